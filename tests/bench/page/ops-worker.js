// SPDX-License-Identifier: MIT
// The wasm operations in a worker, which may wait for its threads as a page may not. Messages as the page sends them, answers in turn.
import { openOps } from '../ops-wasm.mjs';

let ops;

onmessage = async ({ data: { open, cell } }) => {
  if (open) {
    const { default: glue } = await import(`../../../build/wasm/bench/ops-${open.variant}.mjs`);
    ops = await openOps(glue, open.threads);
  }
  postMessage(open ? ops.facts : ops.cell(...cell));
};

// SPDX-License-Identifier: MIT
// Turns a negative status of the engine into the error that callers see.

import { QuernError } from '../shared/errors.js';

/** A value of enum status in src/base/base.h. */
const ERR_EMPTY = -10;

/** The detail of a refused plan. contextSize is the largest context that would fit, or 0 if none fits. */
const planDetail = ({ total, limit, largest }) => ({ needed: total, allowed: limit, contextSize: largest });

/**
 * @param {{wasm: object, heap: import('./heap.js').Heap, engine: number, plan: object}} where
 * @param {number} status
 * @param {string} phase
 */
export function engineError({ wasm, heap, engine, plan }, status, phase) {
  const code = heap.cString(wasm._wasm_status_name(status));
  if (wasm._wasm_error_code(engine) !== status) {
    const message =
      status === ERR_EMPTY ? 'There is nothing to do: the text is empty.' : `The engine refused the call (${code}).`;
    return new QuernError(code, message, { phase });
  }
  const rule = heap.cString(wasm._wasm_error_rule(engine));
  const offset = wasm._wasm_error_offset(engine);
  const detail = { ...(rule && { rule }), ...(offset && { offset }), ...(code === 'mem/plan' && planDetail(plan)) };
  return new QuernError(code, heap.cString(wasm._wasm_error_message(engine)), { phase, detail });
}

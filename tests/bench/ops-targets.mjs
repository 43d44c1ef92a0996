// SPDX-License-Identifier: MIT
// Where the operations of ops.c can run: natively, as wasm in Node, as wasm in Chromium. Each target, once open, has
// `facts {variant, threads, browser}`, `cell(series, length, budgetMs)` and `close()`.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { serve } from '../../tools/serve.mjs';
import { PROJECT } from './fixtures.mjs';
import { Tab } from './tab.mjs';

/** A process that answers every line with a line of JSON, and begins with its facts. */
async function openProcess(program, args) {
  const child = spawn(program, args, { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${program} ${args.join(' ')} ended early`);
    return JSON.parse(value);
  };
  return {
    facts: await answer(),
    cell(...values) {
      child.stdin.write(`${values.join(' ')}\n`);
      return answer();
    },
    close: () => child.stdin.end(),
  };
}

async function openTab(variant, threads) {
  const server = await serve({ root: PROJECT, csp: false });
  const tab = await Tab.open(server.url, 'tests/bench/page/ops.js');
  return {
    facts: { ...await tab.call('open', { variant, threads }), browser: tab.version },
    cell: (...values) => tab.call('cell', values),
    async close() {
      await tab.close();
      await server.close();
    },
  };
}

const NODE = `Node ${process.versions.node}`;

const inNode = (variant, threads) => ({
  name: `${variant}, ${threads === 1 ? '1 thread' : `${threads} threads`}, ${NODE.split('.')[0]}`,
  open: () => openProcess(process.execPath, ['tests/bench/ops-node.mjs', variant, String(threads)]),
});

/** The native build has wasm's vectors emulated, which is slow: it stands here to tell the engine from the browser. */
export const TARGETS = {
  relaxed: inNode('relaxed', 1),
  relaxed2: inNode('relaxed', 2),
  simd: inNode('simd', 1),
  native: { name: 'native, 1 thread', limit: 0.3, open: () => openProcess('build/release/bench/ops', ['1']) },
  chromium: { name: 'relaxed, 1 thread, Chromium', open: () => openTab('relaxed', 1) },
};

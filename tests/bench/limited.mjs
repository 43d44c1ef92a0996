// SPDX-License-Identifier: MIT
// Part of `npm run bench -- --only masks`: what a schema adds to a token of Qwen3-0.6B's dimensions (random weights in Q8_0), replies with one and without
// in turn, each with a schema that nobody has seen; and by how much the first limited reply of a model waits longer.
import { join } from 'node:path';
import { Child } from './child.mjs';
import { PROJECT, bigModel } from './fixtures.mjs';
import { median, table } from './report.mjs';
import { Tab } from './tab.mjs';

const THREADS = 2;
const TOKENS = 64;
const CONTEXT = 256;
const ROUNDS = 8;

const OPEN = { quern: (base) => Tab.open(base, 'tests/bench/page/limited.js'), node: () => Child.open('tests/bench/node/limited.mjs') };

/** @param {'node' | 'quern'} engine @returns {Promise<{first: number, plain: number[], limited: number[]}>} milliseconds; of a token by round */
export async function measureLimited(base, engine) {
  const path = bigModel('q8_0');
  const session = await OPEN[engine](base);
  const found = { first: 0, plain: [], limited: [] };
  try {
    await session.call('load', { url: `/${path}`, path: join(PROJECT, path), threads: THREADS, contextSize: CONTEXT });
    found.first = await session.call('first');
    for (let round = 0; round <= ROUNDS; round++) {
      const plain = await session.call('run', { round, isLimited: false, tokens: TOKENS });
      const limited = await session.call('run', { round, isLimited: true, tokens: TOKENS });
      if (round === 0) continue;      // that code is compiled well
      found.plain.push(plain);
      found.limited.push(limited);
    }
  } finally {
    await session.close();
  }
  return found;
}

/** The part of the report. @param {Record<string, {first: number, plain: number[], limited: number[]}>} all by engine */
export function limitedReport(all, names) {
  const rows = Object.entries(all).map(([engine, { first, plain, limited }]) => {
    const more = limited.map((ms, i) => 100 * (ms / plain[i] - 1));
    const best = 100 * (Math.min(...limited) / Math.min(...plain) - 1);
    return [names[engine], median(plain).toFixed(2), median(limited).toFixed(2), median(more).toFixed(1), `${Math.min(...more).toFixed(1)} to ${Math.max(...more).toFixed(1)}`,
      best.toFixed(1), first.toFixed(0)];
  });
  return `## A token of Qwen3-0.6B

Random weights in Q8_0, ${THREADS} threads, replies of ${TOKENS} tokens with and without a schema in turn, ${ROUNDS} of each, every schema new to the engine. "More": the median of the time that the schema adds, pair by pair; it is below 0 if sampling from few allowed tokens saves more than the mask costs.
"The first": the additional wait of a loaded model's first limited reply, compared with later replies with a new schema: loading the module, and building the tree of all tokens.

${table(['', 'without, ms', 'with, ms', 'more, %', 'from, to', 'best to best, %', 'the first, ms'], rows)}`;
}

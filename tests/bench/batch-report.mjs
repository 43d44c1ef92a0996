// SPDX-License-Identifier: MIT
// The section of bench.md about several sequences together: medians, ratios, and the goals judged by them.
import { machineLine } from './machine.mjs';
import { spread, table } from './report.mjs';

/** Sequences together. */
export const BATCHES = [1, 2, 3, 4, 6, 8, 12, 16];

/** So many with so many tokens in common before each one's own. */
export const SHARED = { batch: 8, tokens: 2048 };

/** What all of them write per second: G2 times native llama.cpp, G3 times what one writes alone; G5: how much longer the same takes over a shared prefix. */
const GOALS = { native: { 1: 1, 2: 1.3, 4: 1.15, 8: 1.15, 16: 0.9 }, own: { 2: 1.25, 4: 1.5, 8: 1.5, 16: 1.7 }, shared: 1.5 };

/** What two medians of the same may differ by. */
const NOISE = 0.02;

const NAMES = { quern: 'quern, Chromium', native: 'llama.cpp native', node: 'quern, Node', simd: 'quern, Chromium without relaxed SIMD', firefox: 'quern, Firefox' };
const HEADING = '## Many at once';

/** @returns {Record<string, Record<string, Record<number | 'shared', {median: number, min: number, max: number, n: number}>>>} by type, engine and number */
export function summariseBatches(runs) {
  const values = (key) => [...new Set(runs.map((run) => run[key]))];
  const measured = [...BATCHES, 'shared'].filter((key) => runs.every(({ speeds }) => speeds[key]));
  return Object.fromEntries(values('type').map((type) => [type, Object.fromEntries(values('engine')
    .map((engine) => [engine, runs.filter((run) => run.type === type && run.engine === engine)])
    .filter(([, mine]) => mine.length)
    .map(([engine, mine]) => [engine, Object.fromEntries(measured.map((key) => [key, spread(mine.map(({ speeds }) => speeds[key]))]))]))]));
}

/** The numbers at which a goal is missed, with what was reached. */
const missed = (goals, reached) => Object.entries(goals)
  .filter(([batch, goal]) => reached(batch) < goal)
  .map(([batch, goal]) => `${batch} (${reached(batch).toFixed(2)}, goal ${goal})`);

/** How many times as long the same rows take over a shared prefix. */
const longer = (mine) => mine[SHARED.batch].median / mine.shared.median;

/** @returns {{G1: string[], G2: string[] | undefined, G3: string[], G5: string[] | undefined}} where an engine misses a goal; undefined where it cannot be judged */
export function judge(mine, native) {
  const falls = BATCHES.slice(1)
    .map((batch, i) => [BATCHES[i], batch, mine[batch].median / mine[BATCHES[i]].median])
    .filter(([, , ratio]) => ratio < 1 - NOISE)
    .map(([from, to, ratio]) => `${from} to ${to} (${ratio.toFixed(2)})`);
  return {
    G1: falls,
    G2: native && missed(GOALS.native, (batch) => mine[batch].median / native[batch].median),
    G3: missed(GOALS.own, (batch) => mine[batch].median / mine[1].median),
    G5: mine.shared && (longer(mine) > GOALS.shared ? [`${SHARED.batch}, shared (${longer(mine).toFixed(2)} times as long, goal ${GOALS.shared})`] : []),
  };
}

const verdict = (places) => (places === undefined ? 'not measured' : places.length ? `missed at ${places.join(', ')}` : 'reached');

function typeTables(type, engines) {
  const keys = Object.keys(Object.values(engines)[0]);
  const speeds = Object.entries(engines).map(([engine, by]) => [NAMES[engine], ...keys.map((key) => by[key].median.toFixed(1))]);
  const ours = Object.entries(engines).filter(([engine]) => engine !== 'native');
  const ratio = (a, b) => keys.map((key) => (a[key].median / b(key)).toFixed(2));
  const ratios = ours.flatMap(([engine, by]) => [
    ...(engines.native ? [[`${NAMES[engine]} : native`, ...ratio(by, (key) => engines.native[key].median)]] : []),
    [`${NAMES[engine]} : its own at 1`, ...ratio(by, () => by[1].median)],
  ]);
  const goals = ours.map(([engine, by]) => {
    const { G1, G2, G3, G5 } = judge(by, engines.native);
    return `- ${NAMES[engine]}: never falls (G1): ${verdict(G1)}; over native (G2): ${verdict(G2)}; over one alone (G3): ${verdict(G3)}; over a shared prefix (G5): ${verdict(G5)}.`;
  });
  return `### ${type.toUpperCase()}, many at once\n\n${table(['tokens/s of all', ...keys.map((key) => (key === 'shared' ? `${SHARED.batch}, shared` : key))], [...speeds, ...ratios])}\n${goals.join('\n')}\n`;
}

/** @param {{machine: object, settings: object, summary: object, runs: object[]}} report */
export function batchSection({ machine, settings: { prompt, generate, threads }, summary, runs }) {
  const load = runs.map(({ machineLoad }) => machineLoad);
  const versions = [...new Set(runs.filter(({ engine }) => engine === 'native').map(({ version }) => version))];
  return `${HEADING}

Made by \`npm run bench -- --only batch\`; batch.json has every run. ${machineLine(machine)}. The machine's load was ${Math.min(...load)} to ${Math.max(...load)}.
Sequences of ${prompt} tokens write ${generate} each, one token of every sequence per step, ${threads} threads; only quern's times include sampling. Medians of up to ${Math.max(...runs.map(({ repetition }) => repetition))} interleaved
repetitions, each in a fresh tab or process; "${SHARED.batch}, shared" are ${SHARED.batch} whose prompts have ${SHARED.tokens} more tokens, the same for all${versions.length ? `; native is llama-batched-bench (${versions.join('; ')}), with the faster of flash attention on and off` : ''}.
The goal G1 counts as reached from one number of sequences to the next if speed falls by less than ${100 * NOISE} %.

${Object.entries(summary).map(([type, engines]) => typeTables(type, engines)).join('\n')}`;
}

/** The page with this section, which is its last, anew. */
export function withSection(page, section) {
  const at = page.indexOf(`\n${HEADING}\n`);
  return `${(at < 0 ? page : page.slice(0, at)).trimEnd()}\n\n${section}`.trimStart();
}

// SPDX-License-Identifier: MIT
// The package without a bundler, in a browser that only opens addresses: what `projects/unbundled` does there, and what must come of it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { load } from '../../dist/node.js';
import { TOKEN, fewLayers } from '../bench/fixtures.mjs';
import { GOLDEN, PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { LIMITS, PAIR } from '../fixtures/vision/golden.mjs';
import { openMailbox } from '../web/undriven.mjs';
import { MODEL, judge, openHost } from './visit.mjs';
import { installUnbundled } from './workshop.mjs';

/**
 * The package's files as they are, on an origin that is isolated or not, and a host of models.
 * @param {{kind: string, isolate: boolean, threads: number, open: (t: object, url: string) => Promise<any>}} condition how many threads are to be
 *   expected of two; `open` starts a browser with that address
 */
export async function openUnbundled(condition, t) {
  const { kind, isolate } = condition;
  const folder = installUnbundled(kind, ['unbundled']);
  copyFileSync(join(PROJECT, 'tests/fixtures/memory-store.mjs'), join(folder, 'memory-store.mjs'));
  const { url, close } = await serve({ root: folder, csp: false, isolate });
  t.after(close);
  return { ...condition, folder, url, host: await openHost(t) };
}

/** What the page reports of one of its tasks, in a browser of its own. */
async function perform(site, task, given, t) {
  const { next, url: report } = await openMailbox(t);
  await site.open(t, `${site.url}#${task}=${encodeURIComponent(JSON.stringify({ ...given, report }))}`);
  const { read, error, ...outcome } = await next();
  read();
  if (error) throw new Error(error);
  return outcome;
}

const library = async (site, t) => judge(await perform(site, 'chat', { model: site.host + MODEL }, t), site);

async function stop(site, t) {
  const { finishReason, tokens: count, threads, first } = await perform(site, 'stop', { model: site.host + MODEL }, t);
  assert.equal(finishReason, 'aborted');
  assert.ok(count < 100, `${count} tokens`);
  return { threads, first };
}

async function golden(site, t) {
  const { host, threads } = site;
  const configurations = (threads === 1 ? [1] : [1, 2]).map((count) => ({ variant: 'simd', threads: count }));
  const files = names.map((name) => ({ model: `${host}${GOLDEN}/${name}.gguf`, expected: host + nativeLogits(name, 'f16') }));
  const { wrong } = await perform(site, 'golden', { files, tokens, configurations }, t);
  assert.deepEqual(wrong, []);
  return { threads, note: `${names.length} files, the native bits` };
}

async function store(site, t) {
  const outcome = await perform(site, 'store', { model: site.host + MODEL }, t);
  assert.deepEqual(outcome.cached, [false, true]);
  return { ...judge(outcome, site), note: 'works, the second load from the store' };
}

/** Images that every decoder must see alike to the bit, and those that EXIF turns, whose pixels differ by some levels. */
const EQUAL = ['exact', 'odd', 'wide', 'tall', 'tiny', 'palette'].map((name) => `images/${name}.png`);
const NEAR = ['images/turned.jpg', ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `files/exif${n}.jpg`), 'files/exif8.png', 'files/exif6.webp'];

/** Of what is seen, in shares of all; an image that is turned the wrong way is far above 1. */
const NEAR_ENOUGH = 0.35;

const distance = (one, other) => Math.sqrt(one.reduce((sum, value, i) => sum + (value - other[i]) ** 2, 0) / other.reduce((sum, value) => sum + value ** 2, 0));

/** The library's decoding: what it sees is what it sees in Node. */
async function images(site, t) {
  const at = (path) => site.host + relative(PROJECT, path).replaceAll('\\', '/');
  const all = [...EQUAL, ...NEAR].map((name) => join(PROJECT, 'tests/fixtures/vision', name));
  const given = { model: at(PAIR.source), vision: at(PAIR.options.vision), visionOptions: LIMITS, images: all.map(at) };
  const { looks, threads } = await perform(site, 'look', given, t);
  const model = await load(PAIR.source, { ...PAIR.options, threads: 1 });
  t.after(() => model.dispose());
  for (const [i, path] of all.entries()) {
    const { rows, columns, values } = await model.look(path);
    assert.deepEqual([looks[i].rows, looks[i].columns], [rows, columns], path);
    if (i < EQUAL.length) assert.deepEqual(looks[i].values, Array.from(values), path);
    const far = distance(looks[i].values, values);
    assert.ok(far <= NEAR_ENOUGH, `${path}: ${far}`);
  }
  return { threads, note: `${all.length} files, ${EQUAL.length} of them to the bit` };
}

/** Least of the best thread count's speed that the count which is chosen has, and, beside a busy process, of one thread's that two have. */
const CHOSEN_WELL = 0.85;
const NOT_WORSE = 0.9;

/** Replies within which the engine finds out that a thread has lost its processor: some seconds. */
const SETTLING = 10;

/** Keeps a processor busy. @returns {() => void} ends that */
function beBusy() {
  const program = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  return () => program.kill();
}

/** A browser may claim more processors than there are, and its threads may wait dearly for one another: as many work as do any good. */
async function threadCounts(site, t) {
  const given = { model: site.host + fewLayers(8), token: TOKEN, rounds: 6, warm: 2 };
  const { claimed, best: [chosen, ...named], working } = await perform(site, 'speeds', { ...given, counts: [null, 1, 2, 4] }, t);
  const say = (speeds) => speeds.map((speed) => speed.toFixed(0)).join(', ');
  assert.ok(chosen >= CHOSEN_WELL * Math.max(...named), `${chosen.toFixed(0)} tokens/s where 1, 2 and 4 threads have ${say(named)}`);
  const rest = beBusy();
  t.after(rest);
  const { best: [one, two] } = await perform(site, 'speeds', { ...given, counts: [1, 2], warm: SETTLING, rounds: 12 }, t);
  assert.ok(two >= NOT_WORSE * one, `beside a busy process two threads have ${two.toFixed(0)} tokens/s and one ${one.toFixed(0)}`);
  return {
    threads: working[0],
    note: `${claimed} processors claimed: ${chosen.toFixed(0)} tokens/s, with 1, 2, 4 threads ${say(named)}; beside a busy process ${two.toFixed(0)} with 2, ${one.toFixed(0)} with 1`,
  };
}

const CASES = { library, stop, golden, store, images };

/** What an unbundled page is tried with: thread counts only where there are threads. */
export const libraryCases = ({ threads }) => (threads > 1 ? { ...CASES, 'thread counts': threadCounts } : CASES);

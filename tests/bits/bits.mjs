// SPDX-License-Identifier: MIT
// One arithmetic on every machine: the SHA-256 of the logits of each golden file, and of what is seen in an image, by one engine, compared with
// those of another machine. CI makes the list on an x86 and compares on ARM, macOS, Windows and in Safari; tests/js/engine/golden.test.mjs compares on one machine.
//   node tests/bits/bits.mjs ENGINE [--out FILE] [--against FILE]
// ENGINE: native, node (every build, one thread and two), chromium, webkit (Playwright's), safari (by safaridriver).
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { load, support } from '../../dist/node.js';
import { serve } from '../../tools/serve.mjs';
import { GOLDEN, PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { LIMITS, PAIR, Q8, imagePath, nativeLook, pixelsOf } from '../fixtures/vision/golden.mjs';
import { openDriven, openPlaywright } from './browsers.mjs';

const THREADS = 2;

/** What a page may take for all files, in ms. */
const PATIENCE_MS = 300_000;

const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** The pairs that see, by their names in the list; this image has no transparency, colour profile or loss, so that decoders agree. */
const SEEING = { 'vision.F16': PAIR, 'vision.Q8_0': Q8 };
const IMAGE = 'exact.png';
const visionOptions = { maxPixels: LIMITS.maxPixels };

const native = () => Object.fromEntries([
  ...names.map((name) => [name, hashOf(readFileSync(join(PROJECT, nativeLogits(name, 'f16'))))]),
  ...Object.entries(SEEING).map(([name, pair]) => [name, hashOf(nativeLook(pair, pixelsOf(IMAGE)))]),
]);

async function hashInNode(name, options) {
  const pair = SEEING[name];
  const model = await load(pair?.source ?? join(PROJECT, GOLDEN, `${name}.gguf`), { chunk: 64, ...pair && { vision: pair.options.vision, visionOptions }, ...options });
  try {
    const { buffer, byteOffset, byteLength } = pair ? (await model.look(imagePath(IMAGE))).values : await model.logits(tokens);
    return hashOf(new Uint8Array(buffer, byteOffset, byteLength));
  } finally {
    await model.dispose();
  }
}

async function node() {
  const variants = ['scalar', 'simd', ...(support().relaxed ? ['relaxed'] : [])];
  const ways = variants.flatMap((variant) => [1, THREADS].map((threads) => ({ variant, threads })));
  const hashes = {};
  for (const name of [...names, ...Object.keys(SEEING)]) {
    for (const way of ways) {
      const hash = await hashInNode(name, way);
      hashes[name] ??= hash;
      assert.equal(hash, hashes[name], `${name}, ${way.variant}, ${way.threads} threads`);
    }
  }
  return hashes;
}

/** The library in a page, with the headers for threads. @param {(url: string) => Promise<{evaluate: Function, close: Function}>} open */
async function page(open) {
  const server = await serve({ root: PROJECT, csp: false });
  const visit = await open(`${server.url}tests/bits/page.html#${new URLSearchParams({ names: names.join(), threads: THREADS })}`);
  try {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
      const outcome = await visit.evaluate('globalThis.outcome ?? null');
      if (outcome?.error) throw new Error(outcome.error);
      if (outcome) {
        assert.equal(outcome.threads, THREADS, 'threads in the page');
        return outcome.hashes;
      }
      await new Promise((done) => { setTimeout(done, 200); });
    }
    throw new Error(`the page has not ended within ${PATIENCE_MS / 1000} s`);
  } finally {
    await visit.close();
    await server.close();
  }
}

const ENGINES = {
  native, node,
  chromium: () => page((url) => openPlaywright('chromium', url)),
  webkit: () => page((url) => openPlaywright('webkit', url)),
  safari: () => page((url) => openDriven(['safaridriver', '-p'], 'safari', url)),
};

const { values, positionals: [engine] } = parseArgs({ options: { out: { type: 'string' }, against: { type: 'string' } }, allowPositionals: true });
assert.ok(Object.hasOwn(ENGINES, engine ?? ''), `ENGINE: one of ${Object.keys(ENGINES).join(', ')}`);
const hashes = await ENGINES[engine]();
if (values.out) writeFileSync(values.out, `${JSON.stringify(hashes, null, 1)}\n`);
if (values.against) assert.deepEqual(hashes, JSON.parse(readFileSync(values.against, 'utf8')), 'the bits differ');
console.log(`bits: ${engine} on ${process.arch}, ${names.length} files${values.against ? ', the same bits' : ''}`);

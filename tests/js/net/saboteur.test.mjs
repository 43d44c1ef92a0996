// SPDX-License-Identifier: MIT
// A saboteur's hour: seeded servers that mix every fault (tests/fixtures/saboteur.mjs) against `load`, `download` and `info`, on a clock
// that tests play and over sockets. Every promise settles within its time, with a code of the network's, the model's or the
// store's; no wrong model is ever loaded; the store holds no more than the header justifies; memory stays. Then the server is honest, and
// the model loads. `npm run test:long -- saboteur` plays 10,000 and 500 of them, npm test the first of them.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load, models } from '../../../dist/node.js';
import { length } from '../../fixtures/lengths.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { sabotage } from '../../fixtures/saboteur.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CLI } from '../support/helper.mjs';

const PLAYED = length(60, 10_000);
const PLAYER = fileURLToPath(new URL('../../fixtures/played-saboteurs.mjs', import.meta.url));
const BATCH = 100;
const MB = 2 ** 20;

test(`${PLAYED} saboteurs on a played clock`, async (t) => {
  const all = {};
  for (let from = 1; from <= PLAYED; from += BATCH) {
    const { stdout } = await promisify(execFile)(process.execPath, [PLAYER, from, Math.min(from + BATCH, PLAYED + 1)].map(String));
    const { codes, grown } = JSON.parse(stdout);
    assert.ok(grown < 200 * MB, `${from}: ${grown / MB} MB more`);
    for (const [code, n] of Object.entries(codes)) all[code] = (all[code] ?? 0) + n;
  }
  t.diagnostic(JSON.stringify(all));
  assert.ok(all.null > PLAYED / 10 && Object.keys(all).length > 5, JSON.stringify(all));
});

/** Two versions of some chunks each; kept in memory, as whoever plays them. */
const REAL = length(8, 500);
const AT_A_TIME = 8;
const MOST_S = 300;
const versions = [1, 2].map((seed) => tinyModel({ seed, layers: 2, hidden: 256, ffn: 2048, heads: 4, headDim: 64 }));

const logitsOf = async (model) => String(await model.logits([1, 2, 3]).finally(() => model.dispose()));

const WAYS = [
  async (url, options) => logitsOf(await load(url, { threads: 1, ...options })),
  async (url, options) => (await models.download(url, options)).complete && null,
  async (url, { store: cache }) => {
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'info', url, '--json', ...(cache ? [] : ['--no-store'])]).catch(({ stderr }) => {
      throw Object.assign(new Error(stderr), { name: 'QuernError', code: /^quern: ([a-z]+\/[a-z]+): /.exec(stderr)?.[1] });
    });
    assert.equal(JSON.parse(stdout).fileBytes, versions[0].length);
    return null;
  },
];

const bytesIn = (folder) => readdirSync(folder).filter((name) => /\.\d+$/.test(name)).reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0);

/** One of them over sockets, and an honest load after it. @returns {Promise<string>} the code */
async function playReal(seed, right, folder) {
  const exclude = seed % 50 === 0 ? [] : ['stall'];
  const { kinds, sha256, step } = sabotage(seed, { versions, exclude, patient: false });
  const cache = mkdtempSync(join(folder, `${seed}-`));
  const options = { store: cache, ...(sha256 && { sha256 }) };
  let honest = false;
  const server = await new LyingServer({ bytes: versions[0], etag: '"one"' }, () => (honest ? {} : step())).start();
  const url = `${server.base}/m.gguf`;
  let most = 0;
  const look = setInterval(() => { most = Math.max(most, bytesIn(cache)); }, 20);
  try {
    const work = WAYS[seed % 3](url, seed % 3 === 2 ? {} : options).then((bits) => ({ code: 'null', bits }), (error) => ({ code: error.code, error }));
    const { code, bits, error } = await Promise.race([work, sleep(1000 * MOST_S, { code: 'late' }, { ref: false })]);
    assert.match(String(code), /^(?:null|net\/\w+|model\/\w+|storage\/quota)$/, error?.stack);
    assert.ok(!bits || right.includes(bits), 'a wrong model');
    assert.ok(most <= versions[0].length + 65_536 + MB, `${most} bytes kept`);
    honest = true;
    assert.ok(right.includes(await WAYS[0](url, options)), 'afterwards another one');
    return code;
  } catch (error) {
    throw new Error(`seed ${seed} (${kinds}): ${error.message}`, { cause: error });
  } finally {
    clearInterval(look);
    await server.close();
    rmSync(cache, { recursive: true });
  }
}

test(`${REAL} saboteurs over sockets`, { timeout: 3_600_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'quern-saboteurs-'));
  const right = [];
  for (const bytes of versions) right.push(await logitsOf(await load(new Blob([bytes]), { threads: 1 })));
  const codes = {};
  const { rss } = process.memoryUsage();
  let peak = rss;
  const look = setInterval(() => { peak = Math.max(peak, process.memoryUsage().rss); }, 50);
  let seed = 0;
  const player = async () => {
    while (seed < REAL) {
      const code = await playReal(++seed, right, folder);
      codes[code] = (codes[code] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, player)).finally(() => {
    clearInterval(look);
    rmSync(folder, { recursive: true });
  });
  t.diagnostic(`${JSON.stringify(codes)}, at most ${((peak - rss) / MB / AT_A_TIME).toFixed()} MB for each of ${AT_A_TIME} at a time`);
  assert.ok(peak - rss < AT_A_TIME * 200 * MB, `${(peak - rss) / MB} MB more`);
});

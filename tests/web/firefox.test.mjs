// SPDX-License-Identifier: MIT
// 64-bit addresses in Firefox, with threads, replies side by side, and memory that dispose() returns. This Firefox has
// no driver (undriven.mjs).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { processFamily, processMemory } from '../bench/machine.mjs';
import { AT_ONCE, checkAtOnce } from '../fixtures/at-once.mjs';
import { CONFIGURATIONS_64, GOLDEN, PROJECT, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { LONG, some } from '../fixtures/lengths.mjs';
import { LIMITED } from '../fixtures/limited.mjs';
import { MODELS, heavyModel } from '../fixtures/tiny.mjs';
import { eventually } from './browser.mjs';
import { checkLimited } from './limited.mjs';
import { openFirefox, openMailbox } from './undriven.mjs';

const NAME = 'nano.Q4_K_M';
const PATIENCE_MS = 90_000;

/** Two threads, if there can be any. */
const AT_ONCE_HERE = { ...AT_ONCE, options: { threads: 2 } };

/** Time until a new browser's processes have become small. */
const SETTLE_MS = 3000;

/**
 * Bytes of all processes that show pages, recognised by the end of their command line. Those that a fork server makes
 * have only one argument.
 */
function memoryOfPages(pid) {
  const pages = processFamily(pid).filter((id) => /\btab\0?$/.test(readFileSync(`/proc/${id}/cmdline`, 'utf8')));
  return pages.reduce((sum, id) => sum + processMemory(id).now, 0);
}

/** Opens a page that does the given tasks. */
async function ask(t, serving, request) {
  const site = await serve({ root: PROJECT, csp: false, ...serving });
  t.after(() => site.close());
  const { next, url: report } = await openMailbox(t);
  const pid = await openFirefox(t, `${site.url}tests/web/report.html#${encodeURIComponent(JSON.stringify({ report, ...request }))}`);
  return { next, pid };
}

/** Waits for the next report, and lets the page continue. */
async function read(next) {
  const found = await next();
  found.read();
  return found;
}

test('64-bit addresses, chats at once, limits in Firefox, cross-origin isolated, two threads', { timeout: PATIENCE_MS }, async (t) => {
  const comparison = { source: `/${GOLDEN}/${NAME}.gguf`, expected: `/${nativeLogits(NAME, 'f16')}`, tokens, configurations: CONFIGURATIONS_64 };
  const { next } = await ask(t, {}, { comparison, chat: '/web/models/demo-q8_0.gguf', atOnce: AT_ONCE_HERE, limited: LIMITED });
  const { problem, support, configurations, results, texts } = await read(next);
  await t.test('64-bit addresses: the native bits, and the text of 32-bit ones', { skip: support?.maxMemory <= 2 ** 32 && 'this Firefox has none' }, () => {
    assert.equal(problem, undefined);
    assert.deepEqual(results, configurations.map((configuration) => ({ ran: configuration, length: true, first: -1 })));
    const [[first, expected], [second, same]] = texts;
    assert.deepEqual([first, second, same], [32, 64, expected]);
    assert.match(expected, /Nairobi/);
  });
  const atOnce = await read(next);
  await t.test('chats at once: each as alone', () => {
    assert.equal(atOnce.threads, 2, atOnce.problem);
    checkAtOnce(atOnce);
  });
  const limited = await read(next);
  await t.test('an object, a pattern and a call: the texts of Node', async () => {
    assert.equal(limited.problem, undefined);
    await checkLimited(limited.said);
  });
});

test('chats at once in Firefox, without shared memory: each as alone', { timeout: PATIENCE_MS, skip: !LONG && 'test:long has it' }, async (t) => {
  const { next } = await ask(t, { isolate: false }, { atOnce: AT_ONCE_HERE });
  const found = await read(next);
  assert.equal(found.threads, 1, found.problem);
  checkAtOnce(found);
});

for (const [where, serving, threads] of some([['cross-origin isolated, two threads', { isolate: true }, 2], ['without shared memory', { isolate: false }, 1]], 2)) {
  test(`models one after the other, ${where}: each gives its memory back`, { timeout: PATIENCE_MS }, async (t) => {
    const bytes = heavyModel();
    const models = createServer((_, response) => response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin', 'Content-Length': bytes.length }).end(bytes));
    await new Promise((done) => { models.listen(0, '127.0.0.1', done); });
    t.after(() => models.close());
    const disposals = { source: `http://127.0.0.1:${models.address().port}/model.gguf`, options: { threads, store: false }, counts: [1, MODELS - 1] };
    const { next, pid } = await ask(t, serving, { disposals });
    const one = await next();
    assert.equal(one.threads, threads, one.problem);
    await new Promise((done) => { setTimeout(done, SETTLE_MS); });
    const first = memoryOfPages(pid);
    one.read();
    const last = await next();
    await eventually(() => memoryOfPages(pid) < 1.1 * first, `as much as after one model, ${first} bytes`).finally(() => t.diagnostic(`${first} bytes, then ${memoryOfPages(pid)}; a model takes ${last.wasm}`));
    last.read();
  });
}

// SPDX-License-Identifier: MIT
// The library in a foreign page under a strict policy: streaming, prefix reuse, replies under limits, the ways to end a
// reply, typed errors, and the browser's abilities. Everything that does not depend on the browser is tested in Node
// (tests/js).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { badFiles } from '../fixtures/bad-gguf.mjs';
import { LIMITED } from '../fixtures/limited.mjs';
import { PROJECT, station } from './browser.mjs';
import { talkativeModel } from './chat-page.mjs';
import { checkLimited } from './limited.mjs';
import { soon } from '../js/support/soon.mjs';

const DEMO = '/web/models/demo-q8_0.gguf';

const isolated = station({ root: PROJECT });
const plain = station({ root: PROJECT, isolate: false });

async function openLibrary(station) {
  const visit = await station.open('tests/web/library.html');
  await visit.page.waitForFunction(() => globalThis.quern);
  return { page: visit.page, console: visit.console, close: () => visit.close() };
}

/** Passes bytes into the page as a File. */
async function giveFile(page, bytes) {
  await page.evaluate(() => { document.body.append(Object.assign(document.createElement('input'), { type: 'file', id: 'pick' })); });
  await page.locator('#pick').setInputFiles({ name: 'model.gguf', mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) });
}

test('two threads in Chromium, with each build by its name', async () => {
  const { page, close } = await openLibrary(isolated);
  const ran = await page.evaluate(async (source) => {
    const infos = [];
    for (const variant of ['relaxed', 'simd', 'scalar']) {
      const model = await globalThis.quern.load(source, { threads: 2, variant });
      infos.push([model.info.variant, model.info.threads, (await model.chat('Hello!', { temperature: 0 }).result).text]);
      await model[Symbol.asyncDispose]();
    }
    return infos;
  }, DEMO);
  assert.deepEqual(ran.map(([variant, threads]) => [variant, threads]), [['relaxed', 2], ['simd', 2], ['scalar', 2]]);
  assert.equal(new Set(ran.map(([, , text]) => text)).size, 1, 'and one text');
  assert.ok(ran[0][2].length > 0);
  await close();
});

/** Longest wait for a token's id, in ms, beside large patterns and a running reply. */
async function longestWait(source) {
  const model = await globalThis.quern.load(source, { threads: 1 });
  await model.chat('Yes?', { choices: ['yes', 'no'] }).result;
  const replies = [model.chat('Tell me a story.', { maxTokens: 2000 })];
  for (let i = 0; i < 8; i++) replies.push(model.chat('Yes?', { regex: `${'w1|'.repeat(300_000)}${Math.random()}`, maxTokens: 1 }));
  const results = replies.map(({ result }) => result);
  let longest = 0;
  for (const end = performance.now() + 3000; performance.now() < end;) {
    const began = performance.now();
    await model.tokenize('a');
    longest = Math.max(longest, performance.now() - began);
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
  for (const reply of replies) reply.stop();
  await Promise.all(results);
  const { value } = await model.chat('Yes?', { choices: ['yes', 'no'] }).result;
  await model.dispose();
  return { longest, value };
}

test('large patterns hold neither other requests nor a reply, with shared memory and without', async () => {
  for (const station of [isolated, plain]) {
    const { page, console: said, close } = await openLibrary(station);
    await soon(250, async () => {
      const { longest, value } = await page.evaluate(longestWait, DEMO);
      assert.ok(['yes', 'no'].includes(value));
      return longest;
    });
    assert.deepEqual(said.filter((line) => /error/i.test(line)), []);
    await close();
  }
});

test('what is compiled is compiled once: a model that is loaded later asks for no file of the engine', async () => {
  for (const station of [isolated, plain]) {
    const { page, close } = await openLibrary(station);
    const asked = [];
    page.context().on('request', (request) => asked.push(new URL(request.url()).pathname));
    const ask = () => page.evaluate(async (source) => {
      const model = await globalThis.quern.load(source, { store: false });
      const { text } = await model.chat('Hello!', { temperature: 0, maxTokens: 12 }).result;
      await model.dispose();
      return text;
    }, DEMO);
    const files = () => asked.splice(0).filter((path) => path.endsWith('.wasm'));
    const text = await ask();
    assert.equal(files().length, 1);
    assert.deepEqual([await ask(), files()], [text, []]);
    await close();
  }
});

test('support() says what runs here', async () => {
  for (const [station, threads] of [[isolated, true], [plain, false]]) {
    const { page, close } = await openLibrary(station);
    const support = await page.evaluate(() => globalThis.quern.support());
    assert.deepEqual([support.ok, support.simd, support.relaxed, support.threads, support.isolated], [true, true, true, threads, threads]);
    assert.equal(support.variant, 'relaxed');
    assert.equal(support.reason === '', threads);
    if (!threads) assert.match(support.reason, /Cross-Origin-Opener-Policy/);
    await close();
  }
});

test('progress in bytes: never back, and complete at the end', async () => {
  const { page, close } = await openLibrary(isolated);
  const events = await page.evaluate(async (source) => {
    const seen = [];
    const model = await globalThis.quern.load(source, { onProgress: (event) => seen.push(event) });
    await model.dispose();
    return seen;
  }, DEMO);
  const loaded = events.map((event) => event.loaded);
  assert.deepEqual(loaded, loaded.toSorted((a, b) => a - b));
  assert.equal(events.at(-1).loaded, events.at(-1).total);
  assert.equal(events.at(-1).phase, 'load');
  await close();
});

test('a conversation streams, and each turn reuses the one before', async () => {
  const { page, close } = await openLibrary(isolated);
  const turns = await page.evaluate(async (source) => {
    const model = await globalThis.quern.load(source, { threads: 2 });
    const messages = [];
    const results = [];
    for (const content of ['Hello! My name is Ada.', 'What is quern?', 'What is the capital of Kenya?']) {
      messages.push({ role: 'user', content });
      const reply = model.chat(messages, { temperature: 0 });
      const parts = [];
      for await (const part of reply) parts.push(part);
      const result = await reply.result;
      messages.push({ role: 'assistant', content: result.text });
      results.push({ parts, ...result });
    }
    await model.dispose();
    return results;
  }, DEMO);
  for (const { parts, text, finishReason } of turns) {
    assert.ok(parts.length > 3, `${parts.length} parts`);
    assert.equal(parts.join(''), text);
    assert.equal(finishReason, 'stop');
  }
  assert.equal(turns[0].usage.cachedTokens, 0);
  assert.ok(turns[1].usage.cachedTokens > 0);
  assert.ok(turns[2].usage.cachedTokens > turns[1].usage.cachedTokens);
  await close();
});

test('an object, a pattern and a call: the texts of Node', async () => {
  const { page, close } = await openLibrary(isolated);
  await checkLimited(JSON.parse(await page.evaluate(async (request) => JSON.stringify(await globalThis.quern.limited(request)), LIMITED)));
  await close();
});

for (const [what, station, threads] of [['two threads', isolated, 2], ['one thread', isolated, 1], ['one thread without shared memory', plain, 1]]) {
  test(`stop() and signal take effect within 200 ms, on ${what}`, async () => {
    const { page, close } = await openLibrary(station);
    await giveFile(page, talkativeModel());
    const outcomes = await page.evaluate(async (count) => {
      const model = await globalThis.quern.load(document.querySelector('#pick').files[0], { threads: count });
      const long = Array.from({ length: 4000 }, (_, i) => i % 250);
      const seen = { threads: model.info.threads };
      for (const how of ['stop', 'signal']) {
        for (const when of ['prefill', 'decode']) {
          // The best of several, since other work on the machine only delays it. Each begins differently, so that
          // nothing is known already.
          const tries = [];
          while (tries.length < 5 && !tries.some(({ heard, free }) => heard < 200 && free < 200)) {
            const prompt = when === 'prefill' ? [how.length + 10 * tries.length, ...long] : [how.length + 10 * tries.length, 1, 2];
            tries.push(await globalThis.quern.interrupt(model, prompt, how, when));
          }
          seen[`${how} in ${when}`] = tries;
        }
      }
      await model.dispose();
      return seen;
    }, threads);
    assert.equal(outcomes.threads, threads);
    delete outcomes.threads;
    for (const [name, tries] of Object.entries(outcomes)) {
      for (const { inTime, end } of tries) {
        assert.ok(inTime, `${name}: the reply was over before`);
        assert.equal(end, name.startsWith('stop') ? 'ended' : 'AbortError', name);
      }
      const { heard, free } = tries.at(-1);
      assert.ok(heard < 200 && free < 200, `${name}: heard after ${heard} ms, free after ${free} ms, the last of ${tries.length} tries`);
    }
    await close();
  });
}

test('errors are typed, and the next load works', async () => {
  const { page, close } = await openLibrary(isolated);
  const { bytes } = badFiles().find(({ codes }) => codes[0] === 'model/format');
  await giveFile(page, bytes);
  const seen = await page.evaluate(async (source) => {
    const { load, QuernError } = globalThis.quern;
    const codeOf = (promise) => promise.then(() => 'no error', (error) => (error instanceof QuernError ? error.code : error.name));
    const codes = [await codeOf(load(document.querySelector('#pick').files[0])), await codeOf(load('/tests/web/library.html'))];
    codes.push(await codeOf(load(source, { signal: AbortSignal.abort() })), await codeOf(load('data:,x:y', { threads: 0 })));
    const model = await load(source, { threads: 2 });
    codes.push(await codeOf(model.chat('word '.repeat(9000)).result));
    codes.push((await model.chat('Hello!').result).finishReason);
    await model.dispose();
    codes.push(await codeOf(model.tokenize('x')));
    return codes;
  }, DEMO);
  assert.deepEqual(seen, ['model/format', 'model/format', 'AbortError', 'use/param', 'use/context', 'stop', 'engine/disposed']);
  await close();
});

test('W02: without isolation: one thread, and one line in the console that says which headers are missing', async () => {
  const { page, console, close } = await openLibrary(plain);
  const threads = await page.evaluate(async (source) => {
    const model = await globalThis.quern.load(source, { threads: 4 });
    await model.dispose();
    return model.info.threads;
  }, DEMO);
  assert.equal(threads, 1);
  const lines = console.filter((text) => text.startsWith('quern:'));
  assert.equal(lines.length, 1);
  assert.match(lines[0], /Cross-Origin-Opener-Policy.*Cross-Origin-Embedder-Policy/);
  await close();
});

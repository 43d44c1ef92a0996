// SPDX-License-Identifier: MIT
// A graphics device in Chromium, which is SwiftShader here: the logits have the bits of the native scalar kernels, a
// reply is that of the processor, and without a device 'webgpu' is refused and 'auto' takes the processor.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeLogits, tokens } from '../fixtures/golden.mjs';
import { PROJECT, station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';

const GOLDEN = '/tests/fixtures/golden';

/** SwiftShader is no device that Chromium offers to pages by itself. */
const device = station({ root: PROJECT, more: ['--enable-unsafe-webgpu'] });
const apart = station({ root: PROJECT, more: ['--enable-unsafe-webgpu'], isolate: false });
const none = station({ root: PROJECT });
const page = station();

async function openLibrary(station, options) {
  const visit = await station.open('tests/web/library.html', options);
  await visit.page.waitForFunction(() => globalThis.quern);
  return visit;
}

/** Loads a model on a device, and on the processor, and asks both. */
async function askBoth(source) {
  const told = [];
  for (const backend of ['webgpu', 'cpu']) {
    const model = await globalThis.quern.load(source, { backend });
    const reply = async (seed) => (await model.complete('one two', { maxTokens: 12, temperature: 1, seed }).result).text;
    const texts = await Promise.all([1, 2, 3].map(reply));
    told.push({ backend: model.info.backend, gpu: model.info.gpu, texts });
    await model.dispose();
  }
  return told;
}

for (const [name, at] of [['an isolated page', device], ['a page that is not isolated', apart]])
  test(`replies on a device are those of the processor, in ${name}`, async () => {
    const visit = await openLibrary(at);
    const [onDevice, onProcessor] = await visit.page.evaluate(askBoth, `${GOLDEN}/nano.Q8_0.gguf`);
    assert.equal(onDevice.backend, 'webgpu');
    assert.match(JSON.stringify(onDevice.gpu), /swiftshader/i);
    assert.deepEqual([onProcessor.backend, onProcessor.gpu], ['cpu', null]);
    assert.deepEqual(onDevice.texts, onProcessor.texts);
    await visit.close();
  });

test('logits on a device have the bits of the native scalar kernels', async () => {
  const visit = await openLibrary(device);
  const name = 'nano.Q4_K_M';
  const [{ ran, length, first }] = await visit.page.evaluate((given) => globalThis.quern.compare(given), {
    source: `${GOLDEN}/${name}.gguf`, expected: `/${nativeLogits(name, 'f16')}`, tokens, configurations: [{ backend: 'webgpu' }],
  });
  assert.deepEqual([ran.variant, length, first], ['webgpu', true, -1]);
  await visit.close();
});

test('fast kernels reply, and are not called exact', async () => {
  const visit = await openLibrary(device);
  const found = await visit.page.evaluate(async (source) => {
    const model = await globalThis.quern.load(source, { backend: 'webgpu', gpu: 'fast' });
    const { usage } = await model.complete('one two', { maxTokens: 3 }).result;
    const { exact } = model.info.gpu;
    await model.dispose();
    return { exact, hasWritten: usage.completionTokens > 0 };
  }, `${GOLDEN}/nano.Q8_0.gguf`);
  assert.deepEqual(found, { exact: false, hasWritten: true });
  await visit.close();
});

/** Writes while the device is lost, and again; and what the processor writes. */
async function lose(source) {
  const options = { maxTokens: 400, temperature: 1, seed: 1, logprobs: 1, logitBias: { 257: -Infinity, 258: -Infinity } };
  const ask = async (model, isWriting = () => {}) => {
    const reply = model.complete('one two', options);
    const seen = [];
    for await (const { text, logprobs } of reply.events) {
      seen.push(text, JSON.stringify(logprobs));
      isWriting();
    }
    const { text, logprobs, usage, finishReason } = await reply.result;
    return { seen: seen.filter((_, i) => i % 2 === 0).join(''), text, logprobs, usage, finishReason };
  };
  const model = await globalThis.quern.load(source, { backend: 'webgpu', drafts: false });
  const found = await ask(model, () => { globalThis.isWriting = true; });
  const after = await ask(model);
  const { backend, gpu } = model.info;
  await model.dispose();
  const processor = await globalThis.quern.load(source, { drafts: false });
  const expected = await ask(processor);
  await processor.dispose();
  return { found, after, expected, backend, isLost: gpu.lost };
}

test('a device is lost: a reply goes on on the processor', async () => {
  const visit = await openLibrary(device, { expected: /WebGPU|GPU|device/i });
  const losing = visit.page.evaluate(lose, `${GOLDEN}/nano.Q8_0.gguf`);
  await visit.page.waitForFunction(() => globalThis.isWriting);
  const session = await device.browser.newBrowserCDPSession();
  await session.send('Browser.crashGpuProcess').catch(() => {});
  const { found, after, expected, backend, isLost } = await losing;
  assert.deepEqual(found, expected);
  assert.deepEqual([found.seen, after.text, backend, isLost], [found.text, found.text, 'cpu', true]);
  assert.ok(visit.console.some((line) => /was lost, and the processor goes on/.test(line)));
  await visit.close();
});

test('without a device webgpu is refused, and auto takes the processor and says so', async () => {
  const visit = await openLibrary(none, { expected: /WebGPU|the processor computes/ });
  const found = await visit.page.evaluate(async (source) => {
    const { code } = await globalThis.quern.load(source, { backend: 'webgpu' }).catch((error) => error);
    const model = await globalThis.quern.load(source, { backend: 'auto' });
    const { backend } = model.info;
    await model.dispose();
    return { code, backend };
  }, `${GOLDEN}/nano.Q8_0.gguf`);
  assert.deepEqual(found, { code: 'env/gpu', backend: 'cpu' });
  assert.ok(visit.console.some((line) => /the processor computes/.test(line)));
  await visit.close();
});

for (const backend of ['auto', 'fast'])
  test(`the page has a choice of what computes, and says what does: ${backend}`, async () => {
    const expected = /WebGPU|the processor computes/;
    const visit = await openChat(page, { init: storeSettings, initArgument: { backend }, expected });
    await visit.chat.ready();
    await visit.page.locator('#settings').click();
    assert.equal(await visit.page.getByLabel('What computes').inputValue(), backend);
    await visit.page.keyboard.press('Escape');
    await visit.page.locator('#model-button').click();
    await visit.page.locator('#model-facts').getByText('the processor').waitFor();
    assert.ok(visit.console.some((line) => /the processor computes/.test(line)));
    await visit.close();
  });

// SPDX-License-Identifier: MIT
// The model dialog: it shows the model in use however it was opened, the first offer fits the device, and a text that
// is no address gets a message.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

test('the dialog behind "Get a real one" says what is in use, and does not offer to load that', async () => {
  const { page, close } = await openChat(here);
  await page.locator('#get-real').click();
  assert.match(await page.locator('#model-facts').innerText(), /In use\s+quern demo/);
  assert.equal(await page.getByRole('button', { name: 'Demo model, in use' }).isDisabled(), true);
  await close();
});

test('a dialog that was open before the model says what is in use as soon as there is one', async () => {
  const visit = await here.open('?model=https://example.com/x.gguf');
  await visit.page.locator('#model-facts').getByText('quern demo').waitFor();
  await visit.close();
});

const phone = { userAgent: 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const little = { init: () => { Object.defineProperty(Navigator.prototype, 'deviceMemory', { get: () => 4 }); } };

for (const [what, options, offer, size] of [['a desktop', {}, 'Q8_0', '639 MB'], ['a phone', phone, 'Q4_K_M', '397 MB'], ['little memory', little, 'Q4_K_M', '397 MB']]) {
  test(`what is offered first: ${offer} on ${what}`, async () => {
    const { page, close } = await openChat(here, options);
    assert.equal(await page.locator('#get-real').innerText(), `Get a real one: Qwen3-0.6B, ${size}`);
    await page.locator('#get-real').click();
    await page.locator('#load-url:focus').waitFor();
    assert.match(await page.getByTestId('model-url').inputValue(), new RegExp(`${offer}\\.gguf$`));
    await close();
  });
}

test('below the address: what it leads to, or that it is none', async () => {
  const { page, close } = await openChat(here);
  const [field, note] = [page.getByTestId('model-url'), page.locator('#url-note')];
  await page.locator('#model-button').click();
  await page.locator('#shelf li').first().waitFor();
  const first = await note.innerText();
  for (const [typed, says] of [
    ['qwen', /^That is no address yet/], ['htt', /^That is no address yet/], ['file:///model.gguf', /^That is no address yet/], ['Qwen/Qwen3-0.6B', /^That is no address yet/],
    ['http://example.com/x.gguf', /^Only addresses with https:\/\/ can be fetched; http:\/\/ is for a server on this device/],
    ['http://localhost:1234/x.gguf', /^Load downloads it from localhost:1234/], ['https://example.com/x.gguf', /^Load downloads it from example\.com/],
    ['huggingface.co/Qwen/Qwen3-0.6B-GGUF', /^Load downloads it from huggingface\.co/],
  ]) {
    await field.fill(typed);
    assert.match(await note.innerText(), says, typed);
  }
  await field.fill('');
  assert.equal(await note.innerText(), first);
  for (const typed of ['', 'qwen', 'http://example.com/x.gguf']) {
    await field.fill(typed);
    await page.keyboard.press('Enter');
    assert.equal(await field.getAttribute('aria-invalid'), 'true', typed);
    assert.match(await note.innerText(), /https:\/\//);
    assert.equal(await page.locator('#model-dialog').isVisible(), true);
  }
  await close();
});

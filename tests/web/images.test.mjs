// SPDX-License-Identifier: MIT
// Images in the page: added by button, paste and drop, shown with their numbers of tokens, sent, shown again after a
// reload, exported and imported; and the message of a model without vision. The engine is played (played-model.js); the
// real one, with a pair of files, is at the end.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { PAIR, imagePath } from '../fixtures/vision/golden.mjs';
import { writePng } from '../fixtures/png.mjs';
import { openChat, storeSettings } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(() => site.remove());
const here = station({ root: site.root });

/** A PNG of one colour. */
const png = (width, height, rgb) => writePng({ width, height, samples: () => rgb });

const RED = { name: 'red.png', mimeType: 'image/png', buffer: png(96, 64, [200, 30, 30]) };
const BLUE = { name: 'blue.png', mimeType: 'image/png', buffer: png(64, 64, [30, 30, 200]) };

const attached = (page) => page.locator('#attached li');
const seeing = (options) => openChat(here, { init: () => { globalThis.playedVision = true; }, ...options });

async function pick(page, files, press = () => page.getByTestId('attach').click()) {
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), press()]);
  await chooser.setFiles(files);
}

/** In the page: passes files to the field like a paste or a drop. */
function hand({ kind, name, mimeType, base64, text }) {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name, { type: mimeType }));
  if (text) data.setData('text/plain', text);
  const init = { bubbles: true, cancelable: true };
  const event = kind === 'paste' ? new ClipboardEvent('paste', { ...init, clipboardData: data }) : new DragEvent('drop', { ...init, dataTransfer: data });
  document.getElementById('input').dispatchEvent(event);
  return event.defaultPrevented;
}
const as = (kind, { name, mimeType, buffer }, text) => ({ kind, name, mimeType, base64: buffer.toString('base64'), text });

/** Whether all images of the messages are drawn. */
const drawn = (page) => eventually(() => page.evaluate(() => [...document.querySelectorAll('.message .thumb')].every(({ naturalWidth }) => naturalWidth > 0)), 'drawn');

test('added, priced, taken away, sent and stored', async () => {
  const { page, chat, close } = await seeing();
  await pick(page, [RED, BLUE]);
  await eventually(async () => await attached(page).count() === 2, 'both are there');
  await attached(page).first().getByText('100 tokens').waitFor();
  assert.deepEqual(await complaints({ page }), []);
  await page.getByRole('button', { name: 'Remove red.png' }).click();
  assert.equal(await attached(page).count(), 1);
  assert.ok(await page.getByTestId('send').isEnabled(), 'an image alone can be sent');
  await chat.ask('Write 5. What is it?');
  assert.equal(await attached(page).count(), 0);
  assert.deepEqual(await page.evaluate(() => globalThis.shown), [['image', 'text']]);
  await drawn(page);
  await page.reload();
  await chat.ready();
  assert.equal(await page.locator('.message.user img.thumb[alt="blue.png"]').count(), 1);
  await drawn(page);
  await chat.ask('Write 5. And now?');
  assert.deepEqual((await page.evaluate(() => globalThis.shown)).map((one) => typeof one), ['object', 'string', 'string'], 'the image is said again');
  await close();
});

test('by paste and by drop, but not where text is pasted; a model file dropped is no image', async () => {
  const { page, close } = await seeing();
  assert.equal(await page.evaluate(hand, as('paste', RED)), true);
  await eventually(async () => await attached(page).count() === 1, 'pasted');
  assert.equal(await page.evaluate(hand, as('paste', RED, 'a cell of a table')), false, 'text is pasted as text');
  await page.evaluate(hand, as('drop', BLUE));
  await eventually(async () => await attached(page).count() === 2, 'dropped');
  await page.evaluate(hand, as('drop', { ...RED, name: 'evil.svg', mimeType: 'image/svg+xml' }));
  assert.equal(await attached(page).count(), 2);
  await close();
});

test('what is not sent stays with its conversation, and editing puts it aside', async () => {
  const { page, chat, close } = await seeing({ viewport: { width: 1280, height: 700 } });
  await pick(page, [RED]);
  await chat.ask('Write 3. First.');
  await pick(page, [BLUE]);
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await page.getByRole('button', { name: 'Remove red.png' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove blue.png' }).waitFor();
  await page.getByTestId('new-chat').click();
  await eventually(async () => await attached(page).count() === 0, 'none in a new one');
  await page.getByTestId('list-button').click();
  await page.locator('#list-rows .list-open').first().click();
  await page.getByRole('button', { name: 'Remove blue.png' }).waitFor();
  await page.reload();
  await chat.ready();
  await page.getByRole('button', { name: 'Remove blue.png' }).waitFor();
  await chat.ask('Write 3. Second.');
  await page.reload();
  await chat.ready();
  assert.equal(await page.locator('.message.user img.thumb').count(), 2);
  assert.equal(await attached(page).count(), 0, 'what was sent does not come back');
  await close();
});

test('an image is shown as large as it fits, and closed by a press anywhere or by a key', async () => {
  const { page, chat, close } = await seeing();
  await pick(page, [{ name: 'large.png', mimeType: 'image/png', buffer: png(1600, 1200, [20, 120, 40]) }]);
  await chat.ask('Write 3. What is it?');
  const large = page.getByRole('dialog', { name: 'large.png' });
  const open = () => page.getByRole('button', { name: 'Show large.png larger' }).click();
  for (const leave of [() => large.getByRole('button', { name: 'Close' }).click(), () => page.mouse.click(5, 5), () => page.keyboard.press('Escape'), () => large.locator('img').click()]) {
    await open();
    const { width, height } = await large.locator('img').boundingBox();
    const view = page.viewportSize();
    assert.ok(width > 0.7 * view.width || height > 0.7 * view.height, `${width} x ${height}`);
    assert.ok(width <= view.width && height <= view.height && Math.abs(width / height - 4 / 3) < 0.02);
    await leave();
    await eventually(async () => await page.locator('dialog.larger').count() === 0, 'it is closed');
  }
  await close();
});

test('a file has one address however often it is shown, and none once nobody has it', async () => {
  const count = () => {
    globalThis.addresses = new Set();
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => { const url = createObjectURL.call(URL, blob); globalThis.addresses.add(url); return url; };
    URL.revokeObjectURL = (url) => { globalThis.addresses.delete(url); revokeObjectURL.call(URL, url); };
  };
  const { page, chat, close } = await seeing();
  await page.evaluate(count);
  const video = { name: 'video.webm', mimeType: 'video/webm', buffer: await readFile(imagePath('../video.webm')) };
  for (const one of [video, RED]) await page.evaluate(hand, as('drop', one));     // a file chooser of the driver would keep them
  await chat.ask('Write 3. What are they?');
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => globalThis.addresses.size), 2);
  await page.getByTestId('new-chat').click();
  const session = await page.context().newCDPSession(page);
  await eventually(async () => {
    await session.send('HeapProfiler.collectGarbage');
    return await page.evaluate(() => globalThis.addresses.size) === 0;
  }, 'they are let go');
  await close();
});

test('a phone takes an image with its camera, which no desk shows', async () => {
  const desk = await seeing();
  assert.equal(await desk.page.getByTestId('camera').isVisible(), false);
  await desk.close();
  const { page, close } = await seeing({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  const asked = page.evaluate(() => new Promise((done) => {
    const { click } = HTMLInputElement.prototype;
    HTMLInputElement.prototype.click = function heard() { done([this.accept, this.getAttribute('capture'), this.multiple]); click.call(this); };
  }));
  await pick(page, [RED], () => page.getByRole('button', { name: 'Take a photo' }).tap());
  assert.deepEqual(await asked, ['image/*', 'environment', false]);
  await eventually(async () => await attached(page).count() === 1, 'it is there');
  assert.deepEqual(await complaints({ page }), []);
  await close();
});

test('looking is told, and stopped', async () => {
  const { page, chat, close } = await seeing();
  await pick(page, [RED, BLUE]);
  await chat.send('Stare.');
  await chat.reply.getByText('Looking at image 1 of 2… 40 %').waitFor();
  await chat.status.getByText('Looking', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await chat.ended();
  await chat.reply.getByText('Stopped.').waitFor();
  await close();
});

test('a model without vision says so, and reads the words alone', async () => {
  const { page, chat, close } = await openChat(here);
  await pick(page, [RED]);
  await chat.notice.getByText('The model in use reads text only. Qwen3-VL-2B sees images: 1.6 GB with its projector.').waitFor();
  await page.evaluate(hand, as('drop', RED));
  assert.equal(await attached(page).count(), 0);
  await page.getByRole('button', { name: 'Show Qwen3-VL-2B' }).click();
  assert.match(await page.getByTestId('model-url').inputValue(), /Qwen3VL-2B-Instruct-Q4_K_M\.gguf$/);
  await close();
});

test('a file of all conversations has the images, and gives them back', async () => {
  const { page, chat, close } = await seeing({ viewport: { width: 1280, height: 700 } });
  await pick(page, [RED]);
  await chat.ask('Write 3. What is red?');
  await page.getByTestId('list-button').click();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save all' }).click()]);
  const saved = JSON.parse(await readFile(await download.path(), 'utf8'));
  assert.equal(saved.conversations[0].messages.find(({ media }) => media).media[0].data, RED.buffer.toString('base64'));
  await close();

  const other = await seeing({ viewport: { width: 1280, height: 700 } });
  await other.page.getByTestId('list-button').click();
  await pick(other.page, { name: 'all.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(saved)) },
    () => other.page.getByRole('button', { name: 'Add from a file' }).click());
  await other.page.locator('#list-rows .list-open').first().click();
  await other.page.locator('.message.user img.thumb[alt="red.png"]').waitFor();
  await drawn(other.page);
  await other.close();
});

const real = station({ serviceWorker: true });

test('two files make a model that sees: what it is shown costs once, and a model that only reads gets the words', { timeout: 120_000 }, async () => {
  // The network may end while the dialog's own code is still on its way.
  const { page, chat, close } = await openChat(real, { init: storeSettings, initArgument: { maxTokens: 6, temperature: 0 }, expected: /^console: .*\/late\/(rows|keeping)/ });
  await page.getByTestId('file-input').setInputFiles([PAIR.options.vision, PAIR.source]);
  await chat.modelName('model');
  await pick(page, imagePath('exact.png'));
  await attached(page).getByText(/^\d+ tokens$/).waitFor();
  const cost = Number.parseInt(await attached(page).locator('.cost').innerText(), 10);
  await chat.ask('What is it?');
  await drawn(page);
  await chat.ask('And now?');
  assert.ok(cost > 10 && await chat.cachedTokens() > cost, `${await chat.cachedTokens()} of ${cost}`);
  assert.equal(await chat.fact('Vision'), 'images and videos');
  await page.context().setOffline(true);
  await pick(page, imagePath('turned.jpg'));
  await chat.ask('A second one?');
  await page.context().setOffline(false);
  await page.reload();
  await chat.ready();
  assert.equal(await page.locator('.message.user img.thumb').count(), 2);
  await chat.ask('What is 27 + 45?');
  assert.match(await chat.text(), /\d/);
  await close();
});

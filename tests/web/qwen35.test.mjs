// SPDX-License-Identifier: MIT
// The page with a small model of Qwen3.5: questions about an image, and a call of a tool in the model's own form. The
// numbers of this model: tests/js/media/vision.test.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { imagePath } from '../fixtures/vision/golden.mjs';
import { vlPath } from '../fixtures/vision-models.mjs';
import { vlProjector } from '../fixtures/vl-projector.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';

const here = station({ serviceWorker: true });

const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(buffer) });

async function openModel(settings) {
  const visit = await openChat(here, { init: storeSettings, initArgument: { temperature: 0, seed: 1, ...settings } });
  const files = [file('small.gguf', readFileSync(vlPath('hybrid', 'f16', 'model.gguf'))), file('small-mmproj.gguf', vlProjector('hybrid'))];
  await visit.page.getByTestId('file-input').setInputFiles(files);
  await visit.chat.modelName('small');
  return visit;
}

test('an image is asked about, and the next turn does not read it again', { timeout: 120_000 }, async () => {
  const visit = await openModel({ maxTokens: 8 });
  const { page, chat } = visit;
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByTestId('attach').click()]);
  await chooser.setFiles(imagePath('exact.png'));
  await page.locator('#attached').getByText(/^\d+ tokens$/).waitFor();
  const cost = Number.parseInt(await page.locator('#attached .cost').innerText(), 10);
  await chat.ask('What is it?');
  await eventually(() => page.locator('.message .thumb').evaluate(({ naturalWidth }) => naturalWidth > 0), 'drawn');
  await chat.ask('And now?');
  const cached = await chat.cachedTokens();
  assert.ok(cost > 10 && cached > cost, `${cached} tokens of the first turn, of which the image has ${cost}`);
  await page.reload();
  await chat.ready();
  assert.equal(await page.locator('.message.user img.thumb').count(), 1);
  assert.deepEqual(await complaints(visit), []);
  await visit.close();
});

test('a tool is called between tags, and the reply goes on with its result', { timeout: 120_000 }, async () => {
  const visit = await openModel({ tools: 'required', maxTokens: 600 });
  const { page, chat } = visit;
  const text = await chat.ask('What is 27 + 45?');
  assert.notEqual(text, '');
  const call = page.getByTestId('call');
  await call.locator('summary').click();
  assert.match(await call.innerText(), /^(Called|calculate has).*Arguments\s+\{("expression":".*")?\}\s+(Result|Error)\s+\S/s);
  await page.reload();
  await chat.ready();
  assert.deepEqual([await chat.text(), await call.count()], [text, 1]);
  assert.deepEqual(await complaints(visit), []);
  await visit.close();
});

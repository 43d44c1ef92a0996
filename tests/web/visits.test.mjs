// SPDX-License-Identifier: MIT
// From one visit of the chat page to the next: the model used last, a download that a reload has cut off, and the
// requests of a link. And interruptions of a load or a reply: servers that refuse, another model in the middle.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tinyModel } from '../fixtures/tiny.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';
import { beginRange, serveModels } from './model-host.mjs';

const here = station();

/**
 * `/closed` requires a token, `/half` stops after 5 MB the first time, `/busy` asks to wait the first time, `/silent`
 * never answers.
 */
const host = { asked: [], tokens: [] };

function find(request, response) {
  const { url, headers } = request;
  const times = host.asked.push(url) && host.asked.filter((one) => one === url).length;
  host.tokens.push([headers.host, headers.authorization]);
  const refuse = (...answer) => {
    response.writeHead(...answer).end();
    return null;
  };
  if (url.startsWith('/silent')) return null;
  if (url.startsWith('/busy') && times === 1) return refuse(429, { 'Retry-After': '4' });
  if (url.startsWith('/missing')) return undefined;
  if (url.startsWith('/closed') && headers.authorization !== 'Bearer hf_secret') return refuse(url.includes('403') ? 403 : 401);
  if (url.startsWith('/large')) return talkativeModel();
  if (!url.startsWith('/half')) return tinyModel();
  if (times > 1) return talkativeModel();
  response.write(beginRange(request, response, talkativeModel()).subarray(0, 5_000_000));
  return null;
}

before(async () => Object.assign(host, await serveModels(find)));
after(() => host.close());

const open = (options) => openChat(here, { origins: [host.url, host.url.replace('localhost', '127.0.0.1')], expected: /Failed to load resource|storage\/quota/, ...options });

test('the model used last is there again at the next visit, from this device alone', async () => {
  const { page, chat, close } = await open();
  await chat.loadUrl(`${host.url}/tiny-Q8_0.gguf`);
  await chat.modelName('tiny-Q8_0');
  const asked = host.asked.length;
  await page.reload();
  await chat.modelName('tiny-Q8_0');
  assert.equal(host.asked.length, asked, 'nothing is fetched');
  assert.equal(await chat.notice.count(), 0);
  assert.equal(await page.locator('#toy').isVisible(), false);
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Load Demo model' }).click();
  await chat.modelName(chat.builtIn);
  await page.reload();
  await chat.modelName(chat.builtIn);
  assert.equal(await chat.notice.count(), 0, 'the toy was chosen');
  await close();
});

test('the toy says that it answers where the last model is gone, or was a file', async () => {
  const { page, chat, close } = await open();
  await chat.loadUrl(`${host.url}/gone.gguf`);
  await chat.modelName('gone');
  await chat.ask('Hello!');
  await page.evaluate(async () => (await navigator.storage.getDirectory()).removeEntry('quern', { recursive: true }));
  await page.reload();
  await chat.modelName(chat.builtIn);
  await chat.notice.getByText('The built-in toy answers now: gone is not stored on this device.').waitFor();
  await chat.loadFile('mine.gguf', tinyModel());
  await chat.modelName('mine');
  assert.equal(await chat.notice.count(), 0);
  await page.reload();
  await chat.notice.getByText('mine came from a file, which has to be chosen again.').waitFor();
  await chat.notice.getByRole('button', { name: 'Choose a model' }).click();
  await page.getByRole('dialog', { name: 'Model' }).waitFor();
  await page.keyboard.press('Escape');
  await chat.notice.getByRole('button', { name: 'Dismiss' }).click();
  await page.reload();
  await chat.ready();
  assert.equal(await chat.notice.count(), 0, 'told is told');
  await close();
});

test('a download that a reload cut off waits with Resume; what is remembered has no secrets', async () => {
  const { page, chat, close } = await open();
  await chat.loadUrl(`${host.url}/half.gguf`);
  await eventually(async () => /5\.0 MB of/.test(await page.getByTestId('progress').innerText()), 'the first 5 MB have come');
  await page.reload();
  await chat.ready();
  await page.getByTestId('progress').getByText('4.2 MB of 6.4 MB are on this device').waitFor();
  await page.getByTestId('resume-load').click();
  await chat.modelName('half');
  assert.equal(await page.getByTestId('progress').count(), 0);
  await page.reload();
  await chat.modelName('half');
  await chat.loadUrl(`${host.url}/tiny.gguf?signature=secret`);
  await chat.modelName('tiny');
  assert.doesNotMatch(await page.evaluate(() => JSON.stringify(localStorage)), /secret/);
  await close();
});

test('a link fills the fields once, not at every reload', async () => {
  const visit = await here.open(`?prompt=Hello&model=${encodeURIComponent(`${host.url}/tiny.gguf`)}&theme=x#place`);
  const { page } = visit;
  await page.locator('#model-dialog[open]').waitFor();
  assert.equal(await page.getByTestId('input').inputValue(), 'Hello');
  await page.getByTestId('status').getByText('Ready', { exact: true }).waitFor();
  assert.equal(page.url(), `${here.url}?theme=x#place`);
  await page.reload();
  await page.getByTestId('status').getByText('Ready', { exact: true }).waitFor();
  assert.equal(await page.getByTestId('input').inputValue(), '');
  assert.equal(await page.locator('#model-dialog').isVisible(), false);
  await visit.close();
});

for (const status of [401, 403]) {
  test(`a model that is not open to everybody (${status}) asks for a token, which goes nowhere else and is not kept`, async () => {
    const { page, chat, close } = await open();
    await chat.loadUrl(`${host.url}/closed-${status}.gguf`);
    await chat.error.getByText(`wants an access token for this file (${status})`).waitFor();
    assert.equal(await chat.error.getByRole('button', { name: 'Try again' }).count(), 0);
    await page.getByTestId('token').fill('hf_secret');
    await page.keyboard.press('Enter');
    await chat.modelName(`closed-${status}`);
    const other = host.url.replace('localhost', '127.0.0.1');
    await chat.loadUrl(`${other}/elsewhere.gguf`);
    await chat.modelName('elsewhere');
    assert.deepEqual(host.tokens.at(-1), [new URL(other).host, undefined]);
    assert.doesNotMatch(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])), /hf_secret/);
    await close();
  });
}

test('a model that there was no room for is used, and the page says that it does not stay', async () => {
  const { page, chat, close } = await open();
  const driver = await page.context().newCDPSession(page);
  await driver.send('Storage.overrideQuotaForOrigin', { origin: new URL(here.url).origin, quotaSize: 5_000_000 });
  await chat.loadUrl(`${host.url}/large.gguf`);
  await chat.modelName('large');
  await chat.notice.getByText('large is in use, but there was no room to store it: the next visit downloads it again.').waitFor();
  await chat.notice.getByRole('button', { name: 'Free some space' }).click();
  await page.getByRole('dialog', { name: 'Model' }).waitFor();
  await page.keyboard.press('Escape');
  await driver.send('Storage.overrideQuotaForOrigin', { origin: new URL(here.url).origin });
  await chat.loadUrl(`${host.url}/large.gguf`);
  await eventually(async () => await chat.notice.count() === 0, 'there is room now');
  await chat.modelName('large');
  await close();
});

test('where trying again cannot help another model is offered', async () => {
  const { page, chat, close } = await open();
  for (const fail of [() => chat.loadFile('broken.gguf', Buffer.from('no model at all, but long enough to be read')), () => chat.loadUrl(`${host.url}/missing.gguf`)]) {
    await fail();
    await chat.error.getByRole('button', { name: 'Choose another' }).click();
    await page.getByRole('dialog', { name: 'Model' }).waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await chat.error.getByRole('button', { name: 'Try again' }).count(), 0);
    await chat.error.getByRole('button', { name: 'Dismiss' }).click();
  }
  await close();
});

test('a server that says nothing is waited for, and the card says so', async () => {
  const { page, chat, close } = await open();
  await chat.loadUrl(`${host.url}/silent.gguf`);
  await page.getByTestId('progress').getByText('Waiting for the server…').waitFor();
  await page.getByTestId('cancel-load').click();
  await chat.ready();
  await close();
});

test('a server that asks for patience gets it, and the card counts down', async () => {
  const { page, chat, close } = await open();
  await chat.loadUrl(`${host.url}/busy.gguf`);
  const told = [];
  await eventually(async () => {
    const [, seconds] = /, the server is busy, trying again in (\d) s/.exec((await page.getByTestId('progress').allInnerTexts()).join()) ?? [];
    if (seconds && seconds !== told.at(-1)) told.push(seconds);
    return await chat.name.innerText() === 'busy';
  }, 'it is loaded after all');
  assert.match(told.join(''), /^4?3?21$/);
  assert.ok(told.length > 2, told.join());
  await chat.modelName('busy');
  await close();
});

test('another model in the middle of a reply asks first', async () => {
  const { page, chat, close } = await open();
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 20, 'text comes');
  for (const [answer, name] of [['Not now', 'talkative'], ['Load it now', 'tiny']]) {
    await chat.loadFile('tiny.gguf', tinyModel());
    await chat.notice.getByText('A reply is being written; loading tiny ends it.').waitFor();
    const before = (await chat.text()).length;
    await eventually(async () => (await chat.text()).length > before, 'the reply goes on');
    await chat.notice.getByRole('button', { name: answer }).click();
    await chat.name.getByText(name, { exact: true }).waitFor();
    assert.equal(await chat.notice.count(), 0);
  }
  await chat.ended();
  await page.getByTestId('send').waitFor();
  await close();
});

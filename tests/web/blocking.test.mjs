// SPDX-License-Identifier: MIT
// The page's main thread never blocks for long: neither while it loads a model, nor while it shows a reply that comes
// faster than anybody reads. Measured as processor time per task (tasks.mjs). Times on the clock are printed and not
// judged.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { length } from '../fixtures/lengths.mjs';
import { scriptedModel } from '../fixtures/scripted.mjs';
import { PAIR } from '../fixtures/vision/golden.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';
import { CATEGORIES, describe, longest, measureLoad, tasksOf } from './tasks.mjs';

const here = station({ serviceWorker: true });

/**
 * Limit of one task while a model loads or writes, in ms of processor time. A frame has 16. With a desktop's fonts 9
 * are measured; a machine with few fonts, which must search for many glyphs, takes 16 to 17.
 */
const FRAME_MS = 24;

/** Limit for noise in all scripts, 700 tokens a second, since missing fonts are searched for again and again. */
const NOISE_MS = 33;

/** Limit while the model reads an image: decoding and the encoder run in workers. */
const LOOK_MS = 16;

/** Limit of one task of a very long reply, and its number of tokens. */
const LONG_REPLY_MS = 50;
const TOKENS = length(2000, 4000);

/** Limit for a text that is made to take long. */
const SLOW_MS = 200;

/** Limit of the page's own script at the start, with compilation and first layout. Nothing is visible before. */
const START_MS = 50;

/** Milliseconds for which the model writes. */
const TALK_MS = 2000;

/**
 * Number of attempts, of which the best counts, since other programs on the same core lengthen processor time through
 * its caches.
 */
const ATTEMPTS = 6;
const PAUSE_MS = 500;

/** In the page: records tasks and pauses by the clock. */
function watchClock() {
  globalThis.clock = { longTasks: [], longestPause: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) globalThis.clock.longTasks.push(Math.round(duration));
  }).observe({ type: 'longtask', buffered: true });
  const { port1, port2 } = new MessageChannel();
  let last = performance.now();
  port2.onmessage = () => {
    const now = performance.now();
    globalThis.clock.longestPause = Math.max(globalThis.clock.longestPause, now - last);
    last = now;
    setTimeout(() => port1.postMessage(0), 4);
  };
  port1.postMessage(0);
}

/** Begins a record, also if a test that failed has left one. */
async function startTracing(page) {
  await here.browser.stopTracing().catch(() => {});
  await here.browser.startTracing(page, { categories: CATEGORIES });
}

/**
 * Opens the page, loads a model from a file, and lets it write.
 * @param {(visit: object) => Promise<void>} talk @returns {Promise<{tasks: object[], begin: number, noise: number,
 *   clock: object}>}
 */
async function traced(file, talk) {
  const blank = await here.browser.newPage();
  await startTracing(blank);
  const visit = await openChat(here, { init: watchClock });
  const { page, chat, close } = visit;
  await page.evaluate(() => { performance.mark('test: begin'); });
  await chat.ask('Tell me a story about an owl and a golden key.');
  await page.getByTestId('file-input').setInputFiles(file);
  await eventually(async () => await chat.name.innerText() !== chat.builtIn, 'the model is loaded');
  await chat.ready();
  await page.evaluate(() => { performance.mark('test: noise'); });
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 0, 'text comes');
  await talk(visit);
  await chat.ended();
  const clock = await page.evaluate(() => globalThis.clock);
  const { traceEvents } = JSON.parse(await here.browser.stopTracing());
  await close();
  await blank.close();
  const at = (mark) => traceEvents.find(({ name }) => name === mark).ts;
  return { tasks: tasksOf(traceEvents, 'test: begin'), begin: at('test: begin'), noise: at('test: noise'), clock };
}

/** A model's file, which is deleted at the end of the test. */
function fileOf(t, bytes) {
  const folder = mkdtempSync(join(tmpdir(), 'quern-web-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'model.gguf');
  writeFileSync(file, bytes);
  return file;
}

/**
 * Tries until one attempt is good.
 * @param {() => Promise<string>} once returns the times of tasks that were too long; '' if none was
 */
async function oneOf(once) {
  const failures = [];
  for (let i = 0; i < ATTEMPTS && failures.length === i; i++) {
    if (i > 0) await sleep(PAUSE_MS);
    const failure = await once();
    if (failure) failures.push(failure);
  }
  assert.ok(failures.length < ATTEMPTS, failures.join('\n'));
}

/** Tries until one attempt has no task as long as this. @param {() => Promise<object[]>} tasksOf */
const noneAsLong = (t, ms, tasksOf) => oneOf(async () => {
  const most = longest(await tasksOf());
  t.diagnostic(`longest task: ${describe(most)}`);
  return most.cpu >= ms * measureLoad().allowance ? describe(most) : '';
});

/** Tries until one attempt has no task longer than its limit: one limit before the mark `noise`, one after it. */
const attempt = (t, file, talk, { start: startMs, work: workMs, flood: floodMs }) => oneOf(async () => {
  const { tasks, begin, noise, clock } = await traced(file, talk);
  const { load, allowance: allowed } = measureLoad();
  const start = longest(tasks.filter((task) => task.start < begin));
  const work = longest(tasks.filter((task) => task.start >= begin && task.start < noise));
  const flood = longest(tasks.filter((task) => task.start >= noise));
  t.diagnostic(`longest task at the start: ${describe(start)}; loading and talking: ${describe(work)}; afterwards: ${describe(flood)}`);
  t.diagnostic(`a busy loop takes ${load.toFixed(2)} times its processor time; allowed are ${[startMs, workMs, floodMs].map((ms) => ms * allowed).join(', ')} ms`);
  t.diagnostic(`by the clock: tasks over 50 ms [${clock.longTasks.join(' ')}], longest pause ${clock.longestPause.toFixed(0)} ms`);
  assert.ok(tasks.length > 20, `only ${tasks.length} tasks in the trace`);
  const late = start.cpu >= startMs * allowed || work.cpu >= workMs * allowed || flood.cpu >= floodMs * allowed;
  return late ? [start, work, flood].map(describe).join('; ') : '';
});

test('no task of the main thread is longer than a frame while a model loads and talks', async (t) => {
  await attempt(t, fileOf(t, talkativeModel()), async ({ page }) => {
    await sleep(TALK_MS);
    await page.keyboard.press('Escape');
  }, { start: START_MS, work: FRAME_MS, flood: NOISE_MS });
});

/** Pieces of a long reply: sections with a paragraph, a list, a table and code. */
function longDocument() {
  const pieces = [];
  for (let i = 0; pieces.length < TOKENS; i++) {
    const words = (n, from) => Array.from({ length: n }, (_, k) => ` word${i}x${from + k}`);
    pieces.push(`\n\n## Section ${i}\n\nIt`, ...words(30, 0), `.\n\n- one ${i}`, ...words(6, 30), `\n- **two ${i}**`, ...words(6, 40), `\n\n| a ${i} | b | c |\n| --- | --- | --- |\n`);
    for (let k = 0; k < 6; k++) pieces.push(`| ${i}.${k} |`, ` cell ${i}.${k} |`, ` \`code${i}.${k}\` |\n`);
    pieces.push(`\n\`\`\`js\nfor (const x${i} of all) {`);
    for (let k = 0; k < 12; k++) pieces.push(`\n  use(x${i}`, `, ${i}.${k});`);
    pieces.push(`\n} // ${i}\n\`\`\`\n`);
  }
  return pieces.slice(0, TOKENS);
}

test('a reply of thousands of tokens with code and tables blocks for less than 50 ms, and does not fight with a person who scrolls', async (t) => {
  await attempt(t, fileOf(t, scriptedModel(longDocument())), async ({ page, chat }) => {
    const scroller = page.locator('#scroller');
    const place = () => scroller.evaluate((node) => node.scrollTop);
    await eventually(async () => await place() > 1500, 'it has scrolled along');
    await scroller.hover();
    await page.mouse.wheel(0, -600);
    await page.locator('#to-end').waitFor();
    const there = await place();
    await eventually(async () => await scroller.evaluate((node) => node.scrollHeight) > there + 5000, 'the reply grows');
    assert.equal(await place(), there, 'and stays where the person is');
    await chat.ended();
    assert.equal(await place(), there);
    const sections = TOKENS / 100;
    assert.match(await chat.text(), new RegExp(`Section 0\\b[^]*Section ${sections}\\b`));
    assert.ok(await chat.reply.locator('table').count() >= 0.9 * sections && await chat.reply.locator('pre').count() >= 0.9 * sections);
  }, { start: START_MS, work: LONG_REPLY_MS, flood: LONG_REPLY_MS });
});

/** Size of a photograph, and its content. */
function photograph() {
  const data = Uint8Array.from({ length: 3 * 400 * 300 }, (_, i) => Math.imul(i, 2654435761) >>> 24);
  return sharp(data, { raw: { width: 400, height: 300, channels: 3 } }).resize(4000, 3000).jpeg().toBuffer();
}

/** Attaches a photograph, asks about it twice. @returns {Promise<object[]>} tasks of the main thread */
async function tasksOfLooking(buffer) {
  const blank = await here.browser.newPage();
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 60, temperature: 0 } });
  await page.getByTestId('file-input').setInputFiles([PAIR.options.vision, PAIR.source]);
  await chat.modelName('model');
  await startTracing(blank);
  await page.evaluate(() => { performance.mark('test: begin'); });
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByTestId('attach').click()]);
  await chooser.setFiles({ name: 'photograph.jpg', mimeType: 'image/jpeg', buffer });
  await page.locator('#attached .cost').getByText(/^\d+ tokens$/).waitFor();
  await chat.ask('What is it?');
  await chat.ask('And now?');
  const { traceEvents } = JSON.parse(await here.browser.stopTracing());
  assert.ok(await chat.cachedTokens() > 200);
  await close();
  await blank.close();
  return tasksOf(traceEvents, 'test: begin');
}

test('no task is longer than a frame while a photograph of 12 megapixels is decoded, looked at and answered', async (t) => {
  const buffer = await photograph();
  await noneAsLong(t, LOOK_MS, () => tasksOfLooking(buffer));
});

/** The last words of a text. */
const LAST = 'That is all.';

/** Small texts that take long to split, because each line, or mark, makes a naive parser read all others. */
const SLOW = {
  item: `- a\n${'a\n'.repeat(32_000)}`, table: 'a\n|-|-|\n'.repeat(8000), marks: `${'*a_'.repeat(1300)}\n\n`.repeat(16),
};

/** In the page: whether a reply is shown to its end. */
const isShown = (last) => [...document.querySelectorAll('.prose > p')].some((node) => node.textContent === last);

/** Shows all these texts. @returns {Promise<object[]>} tasks of the main thread */
async function tasksOfShowing(page) {
  const blank = await here.browser.newPage();
  await startTracing(blank);
  await page.evaluate(() => { performance.mark('test: begin'); });
  for (const name of Object.keys(SLOW)) {
    await page.locator(`#list-rows li[data-id=${name}] .list-open`).click();
    await eventually(() => page.evaluate(isShown, LAST), `${name} is shown`);
    await page.getByTestId('new-chat').click();
    await page.getByTestId('message-assistant').waitFor({ state: 'detached' });
  }
  const { traceEvents } = JSON.parse(await here.browser.stopTracing());
  await blank.close();
  return tasksOf(traceEvents, 'test: begin');
}

test('no task is long where a file of conversations holds texts that take long to split', async (t) => {
  const { page, chat, close } = await openChat(here);
  await page.getByTestId('list-button').click();
  const conversations = Object.entries(SLOW).map(([id, text]) => ({ id, messages: [{ id: 'a', role: 'assistant', content: `${text}\n\n${LAST}` }] }));
  await chat.addFile(JSON.stringify({ quern: 1, conversations }));
  await chat.notice.getByText(`${conversations.length} conversations were added.`).waitFor();
  await noneAsLong(t, SLOW_MS, () => tasksOfShowing(page));
  await close();
});

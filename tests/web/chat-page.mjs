// SPDX-License-Identifier: MIT
// The chat page for tests: what a person does and sees there, by the names that the page gives its parts (data-testid)
// and nothing else of its markup.
import { writeGguf } from '../fixtures/gguf-writer.mjs';
import { tinySpec } from '../fixtures/tiny.mjs';

/** Ids of the tiny vocabulary's first and last special token. */
const [FIRST_SPECIAL, LAST_SPECIAL] = [262, 287];

/** Bytes of a row of the embedding: 8 blocks of 32 columns, Q8_0. */
const ROW_BYTES = 8 * 34;

let talker;

/**
 * A random model that writes until its context of 4096 tokens is full, for tests that stop a reply. The rows of its
 * special tokens are zero, so their logits are zero too and never among the likeliest: it neither ends nor thinks.
 */
export function talkativeModel() {
  if (talker) return talker;
  const spec = tinySpec({ layers: 6, hidden: 256, ffn: 1024, heads: 4, kvHeads: 2, headDim: 64, context: 4096 });
  const { data } = spec.tensors.find(({ name }) => name === 'token_embd.weight');
  data.fill(0, FIRST_SPECIAL * ROW_BYTES, (LAST_SPECIAL + 1) * ROW_BYTES);
  talker = Buffer.from(writeGguf(spec));
  return talker;
}

export class ChatPage {
  /** The page's name for the demo model. */
  builtIn;

  constructor(page) {
    this.page = page;
    this.input = page.getByTestId('input');
    this.name = page.getByTestId('model-name');
    this.status = page.getByTestId('status');
    this.replies = page.getByTestId('message-assistant');
    this.reply = this.replies.last();
    this.error = page.getByTestId('error');
    this.notice = page.getByTestId('notice');
  }

  async ready() {
    await this.status.getByText('Ready', { exact: true }).waitFor();
  }

  /** Sends without waiting for the reply. */
  async send(text) {
    await this.input.fill(text);
    const isTouch = await this.page.evaluate(() => matchMedia('(pointer: coarse)').matches);
    if (isTouch) await this.page.getByTestId('send').click();
    else await this.input.press('Enter');
  }

  /** @returns {Promise<string>} the reply's text */
  async ask(text) {
    const questions = this.page.getByTestId('message-user');
    const before = await questions.count();
    await this.send(text);
    await questions.nth(before).waitFor();
    await this.ended();
    return this.text();
  }

  /** Waits for the end of the running reply, however it ends. */
  async ended() {
    await this.page.locator('[data-testid=message-assistant][aria-busy=false]:last-child').waitFor();
    await this.page.getByTestId('send').waitFor();
  }

  /** Text of the last reply. */
  text() {
    return this.reply.locator('.prose').innerText();
  }

  /** Number of tokens of the last prompt that were known already. */
  async cachedTokens() {
    const title = await this.reply.locator('.tools').getAttribute('title');
    return Number(/([\d,]+) of them known/.exec(title)?.[1].replaceAll(',', '') ?? 0);
  }

  /** A line of the facts in the model dialog, such as 'Threads'. */
  async fact(name) {
    await this.page.locator('#model-button').click();
    const value = await this.page.locator('#model-facts div', { hasText: name }).locator('dd').innerText();
    await this.page.keyboard.press('Escape');
    return value;
  }

  /** Loads a model by address. */
  async loadUrl(url) {
    await this.page.locator('#model-button').click();
    await this.page.getByTestId('model-url').fill(url);
    await this.page.getByTestId('load-url').click();
  }

  /** Loads a model as a file chosen from the disk. */
  async loadFile(name, bytes) {
    await this.page.getByTestId('file-input').setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) });
  }

  /** Imports the conversations of a file into the list, which is open. @param {string | Buffer} content */
  async addFile(content) {
    const chosen = this.page.waitForEvent('filechooser');
    await this.page.getByRole('button', { name: 'Add from a file' }).click();
    await (await chosen).setFiles({ name: 'all.json', mimeType: 'application/json', buffer: Buffer.from(content) });
  }

  async modelName(text) {
    await this.name.getByText(text, { exact: true }).waitFor();
    await this.ready();
  }
}

/** Settings in the form that the page stores, to be set before it starts (`init` of a visit). */
export function storeSettings(settings) {
  localStorage.setItem('quern:settings', JSON.stringify(settings));
}

/** Opens the page and waits for the demo model. */
export async function openChat(station, options) {
  const visit = await station.open('', options);
  const chat = new ChatPage(visit.page);
  await chat.ready();
  chat.builtIn = await chat.name.innerText();
  return { ...visit, chat, close: () => visit.close() };
}

/** Opens another tab of the same browser. @param {{page: object}} visit */
export async function secondTab(visit) {
  const page = await visit.page.context().newPage();
  await page.goto(visit.page.url());
  const chat = new ChatPage(page);
  await chat.ready();
  return { page, chat };
}

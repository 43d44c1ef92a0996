// SPDX-License-Identifier: MIT
// Files that become texts of a message, and the question whether a file is a model. Kinds are recognised by their first
// bytes, since browsers guess a file's type from its name only. Documents other than plain text are read by a worker
// (the room `document`), which ends with its job.
import { announce, button, byId, element } from '../shell/dom.js';
import { bytes as amount, count, oneLine } from '../shell/format.js';

/** Most bytes of a text. A token has some four letters, so no context of this page holds more. */
const LARGEST = 4e6;

const HEAD = 512;

/** Work that is done sooner than this shows no line. */
const PATIENCE_MS = 300;

const ascii = (head) => String.fromCharCode(...head);

/** Texts are UTF-8, or UTF-16 if they begin with its mark, as files of some editors and spreadsheets do. */
async function decode(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const [a, b] = bytes;
  const encoding = (a === 0xff && b === 0xfe && 'utf-16le') || (a === 0xfe && b === 0xff && 'utf-16be') || 'utf-8';
  const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  if (text.includes('\0')) throw new TypeError('A text has no zeros.');
  return text.replaceAll(/\r\n?/g, '\n');
}

async function readText(file, name) {
  if (file.size > LARGEST)
    throw new Error(`${name} has ${amount(file.size)}; a text of a message has ${amount(LARGEST)} at most.`);
  const text = await decode(file).catch(() => null);
  if (text === null) throw new Error(`${name} is no image, model, document or text (UTF-8), so this page cannot read it.`);
  return text;
}

/** Kinds of files that the worker reads (document/reader.js), by their first bytes and their names. */
const KINDS = [
  ['pdf', (head) => head.includes('%PDF-')],
  ['archive', (head) => head.startsWith('PK\x03\x04')],
  ['page', (head, name) => /^(?:\xef\xbb\xbf)?\s*<(?:!doctype )?html\b/i.test(head) || /\.x?html?$/i.test(name)],
];

/** Files that only their own programs read. */
const isOldOffice = (head) => head.startsWith('\xd0\xcf\x11\xe0');

/** Shows what is being done, with a button that cancels it. @returns {{say: Function, remove: Function}} */
function showWork(sentence, onCancel) {
  const words = element('span', {}, sentence);
  const node = element('p', { className: 'hint', hidden: true }, words, ' ', button('Cancel', onCancel, 'link-button'));
  byId('attached').before(node);
  const shown = setTimeout(() => {
    node.hidden = false;
    announce(sentence);
  }, PATIENCE_MS);
  return {
    say: (more) => { words.textContent = `${sentence}: ${more}`; },
    remove: () => {
      clearTimeout(shown);
      node.remove();
    },
  };
}

const rules = { createScriptURL: () => './reader.js' };
let policy;

/**
 * Lets a worker of its own do a job.
 * @returns {Promise<?object>} its answer; null if the visitor cancelled it; rejects with a sentence
 */
function inWorker(job, sentence, name) {
  policy ??= globalThis.trustedTypes?.createPolicy('quern-read', rules) ?? rules;
  const worker = new Worker(policy.createScriptURL(''), { type: 'module' });
  return new Promise((done, fail) => {
    const line = showWork(sentence, () => end(done, null));
    const end = (how, value) => {
      worker.terminate();
      line.remove();
      how(value);
    };
    worker.addEventListener('message', ({ data }) => {
      if (data.what) line.say(`${data.what} ${count(data.done + 1)} of ${count(data.all)}`);
      else if (data.refusal) end(fail, new Error(`${name} ${data.refusal}`));
      else end(done, data);
    });
    worker.addEventListener('error', () => end(fail, new Error(`${name} cannot be read: the reader of documents has failed.`)));
    worker.postMessage(job);
  });
}

/**
 * The text of a file.
 * @param {File} file
 * @returns {Promise<?{name: string, text: string}>} null if it was cancelled; rejects with a sentence for the visitor
 */
export async function readDocument(file) {
  const name = oneLine(file.name, 80) || 'Text';
  const head = ascii(new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
  if (isOldOffice(head))
    throw new Error(`${name} is an old or a protected Office file. Save a copy as DOCX, PPTX or PDF, without a password.`);
  const [kind] = KINDS.find(([, is]) => is(head, name)) ?? [];
  const answer = kind ? await inWorker({ kind, file }, `Reading ${name}`, name) : { text: await readText(file, name) };
  if (!answer) return null;
  if (!answer.text.trim()) throw new Error(`${name} ${kind ? 'has no text' : 'is empty'}.`);
  return { name, text: answer.text };
}

/**
 * Separates the files of models: GGUF files, and all files beside a safetensors file or a tokenizer.
 * @param {File[]} files
 * @returns {Promise<{models: File[], others: File[]}>}
 */
export async function sortFiles(files) {
  if (files.some(({ name }) => /\.(?:safetensors|tokenizer)$/i.test(name))) return { models: files, others: [] };
  const isModel = await Promise.all(files.map(async (file) => (
    /\.gguf$/i.test(file.name) || await file.slice(0, 4).text() === 'GGUF')));
  return { models: files.filter((_, i) => isModel[i]), others: files.filter((_, i) => !isModel[i]) };
}

const amountOf = (tokens) => `${count(tokens)} tokens`;

/**
 * A sentence about texts that are too long for what is left of the context, or ''.
 * @param {number} tokens of the texts
 * @param {{size: number, used: number}} context in tokens: its size, and what the conversation takes
 */
export function adviceOn(tokens, { size, used }) {
  if (!size || used + tokens < size) return '';
  const takes = `The text takes ${amountOf(tokens)}, and `;
  if (tokens >= size) return `${takes}the context holds ${amountOf(size)}: it will not fit. The settings have the context size.`;
  return `${takes}${amountOf(size - used)} are left: the model will no longer read the beginning of the conversation.`;
}

// SPDX-License-Identifier: MIT
// Files that become texts of a message, and the question whether a file is a model. Kinds are recognised by their first
// bytes, since browsers guess a file's type from its name only. Documents other than plain text are read by a worker
// (the room `document`), which ends with its job.
import { bytes as amount, oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';
import { inWorker } from './reading.js';

export { advise, fit, search } from './nearest.js';
export { inWorker };

/** Most bytes of a text. A token has some four letters, so no context of this page holds more. */
const LARGEST = 4e6;

const HEAD = 512;

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
    throw new Error(say`${name} has ${amount(file.size)}; a text of a message has ${amount(LARGEST)} at most.`);
  const text = await decode(file).catch(() => null);
  if (text === null)
    throw new Error(say`${name} is no image, model, document or text (UTF-8), so this page cannot read it.`);
  return text;
}

/** Kinds of files that the worker reads (document/reader.js), by their first bytes and their names. */
const KINDS = [
  ['pdf', (head) => /^(?:\xef\xbb\xbf)?\s*%PDF-/.test(head)],
  ['archive', (head) => head.startsWith('PK\x03\x04')],
  ['page', (head, name) => /^(?:\xef\xbb\xbf)?\s*<(?:!doctype )?html\b/i.test(head) || /\.x?html?$/i.test(name)],
];

/** Files that only their own programs read. */
const isOldOffice = (head) => head.startsWith('\xd0\xcf\x11\xe0');

/**
 * The text of a file.
 * @param {File} file
 * @returns {Promise<?{name: string, text: string}>} null if it was cancelled; rejects with a sentence for the visitor
 */
export async function readDocument(file) {
  const name = oneLine(file.name, 80) || say`Text`;
  const head = ascii(new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
  if (isOldOffice(head))
    throw new Error(say`${name} is an old or a protected Office file. Save a copy as DOCX, XLSX, PPTX or PDF, without a password.`);
  const [kind] = KINDS.find(([, is]) => is(head, name)) ?? [];
  const answer = kind
    ? await inWorker({ kind, file }, say`Reading ${name}`, name)
    : { text: await readText(file, name) };
  if (!answer) return null;
  if (!answer.text.trim()) throw new Error(kind ? say`${name} has no text.` : say`${name} is empty.`);
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

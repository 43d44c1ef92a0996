// SPDX-License-Identifier: MIT
// Files that become texts of a message, and the question whether a file is a model. Kinds are recognised by their first
// bytes, since browsers guess a file's type from its name only. A new kind of document is a row of KINDS.
import { bytes as amount, count, oneLine } from '../shell/format.js';

/** Most bytes of a text. A token has some four letters, so no context of this page holds more. */
const LARGEST = 4e6;

const HEAD = 512;

const ascii = (head) => String.fromCharCode(...head);

/** Texts are UTF-8, or UTF-16 if they begin with its mark, as files of some editors and spreadsheets do. */
async function readText(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const [a, b] = bytes;
  const encoding = (a === 0xff && b === 0xfe && 'utf-16le') || (a === 0xfe && b === 0xff && 'utf-16be') || 'utf-8';
  const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  if (text.includes('\0')) throw new TypeError('A text has no zeros.');
  return text.replaceAll(/\r\n?/g, '\n');
}

const notYet = (kind) => ({ name }) => {
  throw new Error(`${name}: ${kind} files cannot be read yet. Open it in its own program, copy the text, and paste it here.`);
};

/** Kinds other than plain text: whether a file is one, by its first bytes and its name, and who reads its text. */
const KINDS = [
  [(head) => head.startsWith('%PDF-'), notYet('PDF')],
  [(head, name) => head.startsWith('PK\x03\x04') && /\.docx$/i.test(name), notYet('Word')],
  [(head, name) => /^PK\x03\x04|^\xd0\xcf\x11\xe0/.test(head) && /\.(?:docm?|xlsx?|pptx?|od[tsp]|epub|pages)$/i.test(name),
    notYet('Office')],
];

/**
 * The text of a file.
 * @param {File} file
 * @returns {Promise<{name: string, text: string}>} rejects with a sentence for the visitor
 */
export async function readDocument(file) {
  const name = oneLine(file.name, 80) || 'Text';
  const head = ascii(new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
  const [, read] = KINDS.find(([is]) => is(head, name)) ?? [];
  if (read) return { name, text: await read({ name, file }) };
  if (file.size > LARGEST)
    throw new Error(`${name} has ${amount(file.size)}; a text of a message has ${amount(LARGEST)} at most.`);
  const text = await readText(file).catch(() => null);
  if (text === null) throw new Error(`${name} is no image, model or text (UTF-8), so this page cannot read it.`);
  if (!text.trim()) throw new Error(`${name} is empty.`);
  return { name, text };
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

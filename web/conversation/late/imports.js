// SPDX-License-Identifier: MIT
// Adds the conversations of a file: what this page has saved, or what ChatGPT, llama.cpp's page or Open WebUI export. A
// worker reads the file (document/late/exports.js). Afterwards the page says how many conversations were added, and
// what could not be taken. Fetched with the first such file.
import { count, oneLine } from '../../shell/format.js';

/** Sentences about what was not taken, for its number. */
const LEFT = {
  images: (n) => `Images left out, because only their addresses are in the file: ${count(n)}.`,
  files: (n) => `Attached files left out, because only their names are in the file: ${count(n)}.`,
  calls: (n) => `Calls of tools left out, because this page does not have these tools: ${count(n)}.`,
  cut: (n) => `Texts cut after a million characters: ${count(n)}.`,
  circles: (n) =>
    `Conversations left out, because their messages follow each other in a circle or are too many: ${count(n)}.`,
};

/** More conversations take seconds to store, which is said. */
const MANY = 100;

const added = (n) => (n === 1 ? 'One conversation was added.' : `${count(n)} conversations were added.`);

/**
 * @param {File} file
 * @param {import('../archive.js').Archive} archive
 * @param {(sentence: string) => void} say what was done; nothing if the visitor cancelled it
 */
export async function addFrom(file, archive, say) {
  const { inWorker } = await import('../documents.js');
  const name = oneLine(file.name, 80) || 'This file';
  const found = await inWorker({ file }, `Reading ${name}`, name, { script: 'exports' });
  if (!found) return;
  const { conversations, left = {} } = found;
  const sentences = Object.keys(LEFT).filter((what) => left[what] > 0).map((what) => LEFT[what](left[what]));
  if (conversations.length > MANY) say(`Adding ${count(conversations.length)} conversations…`);
  say([added(await archive.import(conversations)), ...sentences].join(' '));
}

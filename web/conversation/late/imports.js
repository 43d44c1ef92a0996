// SPDX-License-Identifier: MIT
// Adds the conversations of a file: what this page has saved, or what ChatGPT, llama.cpp's page or Open WebUI export. A
// worker reads the file (document/late/exports.js). Afterwards the page says how many conversations were added, and
// what could not be taken. Fetched with the first such file.
import { oneLine } from '../../shell/format.js';
import { joined, plural, say } from '../../shell/words.js';

/** Sentences about what was not taken, for its number. */
const LEFT = {
  images: (n) => say`Images left out, because only their addresses are in the file: ${n}.`,
  files: (n) => say`Attached files left out, because only their names are in the file: ${n}.`,
  calls: (n) => say`Calls of tools left out, because this page does not have these tools: ${n}.`,
  cut: (n) => say`Texts cut after a million characters: ${n}.`,
  circles: (n) =>
    say`Conversations left out, because their messages follow each other in a circle or are too many: ${n}.`,
};

/** More conversations take seconds to store, which is said. */
const MANY = 100;

const added = (n) => plural(n, 'One conversation was added.', '{1} conversations were added.');

/**
 * @param {File} file
 * @param {import('../archive.js').Archive} archive
 * @param {(sentence: string) => void} tell what was done; nothing if the visitor cancelled it
 */
export async function addFrom(file, archive, tell) {
  const { inWorker } = await import('../documents.js');
  const name = oneLine(file.name, 80) || say`This file`;
  const found = await inWorker({ file }, say`Reading ${name}`, name, { script: 'exports' });
  if (!found) return;
  const { conversations, left = {} } = found;
  const sentences = Object.keys(LEFT).filter((what) => left[what] > 0).map((what) => LEFT[what](left[what]));
  if (conversations.length > MANY) tell(say`Adding ${conversations.length} conversations…`);
  tell(joined(added(await archive.import(conversations)), ...sentences));
}

// SPDX-License-Identifier: MIT
// What was typed and not sent, for each conversation ('' is the new one). At once in localStorage: a page that is about
// to go away has no time for anything else. What does not fit there, or may not lie there, lasts as long as the page.
import { read, write } from '../shell/storage.js';

const KEY = 'quern:drafts';
const MOST = 50;
const LONGEST = 100_000;

/** id -> text, where the store has not all of it. */
const unstored = new Map();

function all() {
  const stored = read(KEY);
  return Array.isArray(stored)
    ? stored.filter((one) => typeof one?.id === 'string' && typeof one.text === 'string')
    : [];
}

/** Whether all that was typed outlives the page. */
export const areKept = () => unstored.size === 0;

export const readDraft = (id) => unstored.get(id) ?? all().find((one) => one.id === id)?.text.slice(0, LONGEST) ?? '';

export function writeDraft(id, text) {
  const others = all().filter((one) => one.id !== id);
  const drafts = text ? [{ id, text: text.slice(0, LONGEST) }, ...others] : others;
  const isStored = write(KEY, drafts.slice(0, MOST)) && text.length <= LONGEST;
  if (isStored) unstored.delete(id);
  else unstored.set(id, text);
}

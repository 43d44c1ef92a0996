// SPDX-License-Identifier: MIT
// Unsent texts of the conversations ('': of a new one). They are written to localStorage at once, since a page that is
// closed has no time later. A text that does not fit there, or may not be stored, lasts as long as the page.
import { read, write } from '../shell/storage.js';

const KEY = 'quern:drafts';
const MOST = 50;
const LONGEST = 100_000;

/** id -> text that is not completely stored. */
const unstored = new Map();

function all() {
  const stored = read(KEY);
  return Array.isArray(stored)
    ? stored.filter((one) => typeof one?.id === 'string' && typeof one.text === 'string')
    : [];
}

/** Whether all unsent texts outlive the page. */
export const areSaved = () => unstored.size === 0;

export const readDraft = (id) => unstored.get(id) ?? all().find((one) => one.id === id)?.text.slice(0, LONGEST) ?? '';

export function writeDraft(id, text) {
  const others = all().filter((one) => one.id !== id);
  const drafts = text ? [{ id, text: text.slice(0, LONGEST) }, ...others] : others;
  const isStored = write(KEY, drafts.slice(0, MOST)) && text.length <= LONGEST;
  if (isStored) unstored.delete(id);
  else unstored.set(id, text);
}

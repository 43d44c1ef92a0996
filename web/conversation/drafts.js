// SPDX-License-Identifier: MIT
// What was typed and not sent, for each conversation ('' is the new one). At once in localStorage: a page that is about to go away has no
// time for anything else.
import { read, write } from '../shell/storage.js';

const KEY = 'quern:drafts';
const MOST = 50;
const LONGEST = 100_000;

function all() {
  const stored = read(KEY);
  return Array.isArray(stored) ? stored.filter((one) => typeof one?.id === 'string' && typeof one.text === 'string') : [];
}

export const readDraft = (id) => all().find((one) => one.id === id)?.text.slice(0, LONGEST) ?? '';

export function writeDraft(id, text) {
  const others = all().filter((one) => one.id !== id);
  const drafts = text ? [{ id, text: text.slice(0, LONGEST) }, ...others] : others;
  write(KEY, drafts.slice(0, MOST));
}

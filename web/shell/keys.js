// SPDX-License-Identifier: MIT
// The shortcuts of the keyboard: one table, from which come what keys do, what tooltips say, and the dialog that lists
// them. They are those of ChatGPT (new chat, message field, this list) and of llama.cpp's page (search, list). No row
// takes a key that browsers keep for themselves, or that edits text. This file is fetched when the page can be used.
import { byId, element, isComposed } from './dom.js';
import { showSheet } from './sheet.js';
import { say, sayNodes } from './words.js';

const IS_MAC = /Mac|iP/.test(navigator.platform);

/** The action, its words, its keys (Mod: Ctrl, or Command on a Mac), and the button whose tooltip names them. */
const SHORTCUTS = [
  ['newChat', say`New chat`, ['Mod+Shift+O'], 'new-chat'],
  ['search', say`Search the conversations`, ['Mod+K'], 'list-search'],
  ['list', say`Open or close the list`, ['Mod+B'], 'list-button'],
  ['focus', say`Go to the message field`, ['Shift+Escape']],
  ['edit', say`Edit the last message, from an empty field`, ['ArrowUp']],
  ['escape', say`Stop the reply, or end an edit`, ['Escape'], 'stop'],
  ['copy', say`Copy the last reply`, ['Mod+Shift+L']],
  ['help', say`Show these shortcuts`, ['Mod+/', '?'], 'shortcuts'],
];

const NAMES = {
  Mod: IS_MAC ? '⌘' : say`Ctrl`, Shift: IS_MAC ? '⇧' : say`Shift`, Escape: say`Esc`, ArrowUp: '↑',
};

const nameOf = (keys) => keys.split('+').map((key) => NAMES[key] ?? key).join(IS_MAC ? '' : '+');

/**
 * The keys of an event as the table writes them. Shift belongs to the character of a sign. A keyboard without Latin
 * letters has its shortcuts at the places of these letters.
 */
function pressed({ key, code, ctrlKey, metaKey, altKey, shiftKey }) {
  const name = key.length > 1 || /[!-~]/.test(key) ? key : code.replace('Key', '');
  const isSign = /^[^a-z]$/i.test(name);
  if (altKey || (IS_MAC ? ctrlKey : metaKey)) return '';
  const held = [(ctrlKey || metaKey) && 'Mod+', shiftKey && !isSign && 'Shift+'].filter(Boolean).join('');
  return held + (name.length > 1 ? name : name.toUpperCase());
}

/** Shows the dialog that lists the shortcuts. */
function help() {
  const keysOf = (all) => {
    const [first, second] = all.map((keys) => element('kbd', { dir: 'ltr' }, nameOf(keys)));
    return second ? sayNodes`${first} or ${second}` : [first];
  };
  const rows = SHORTCUTS.flatMap(([, words, all]) => [element('dt', {}, words), element('dd', {}, ...keysOf(all))]);
  const dialog = showSheet('shortcuts', say`Keyboard shortcuts`, element('dl', { className: 'keys' }, ...rows));
  dialog.addEventListener('click', ({ target }) => { if (target === dialog) dialog.close(); });
}

/** @param {Record<string, (event: KeyboardEvent) => any>} actions of the table; they return false if they do not apply */
export function listenToKeys(actions) {
  for (const [, , [keys], id] of SHORTCUTS) {
    if (!id) continue;
    const node = byId(id);
    node.title = node.title ? `${node.title} (${nameOf(keys)})` : nameOf(keys);
    node.setAttribute('aria-keyshortcuts', keys.replace('Mod', IS_MAC ? 'Meta' : 'Control'));
  }
  byId('shortcuts').addEventListener('click', help);
  addEventListener('keydown', (event) => {
    const keys = pressed(event);
    // A list that covers the page is no reason to ignore the keys that open and close it.
    const modal = document.querySelector('dialog:modal');
    const isTaken = isComposed(event) || event.repeat || (modal && !(modal.id === 'list' && keys.startsWith('Mod')))
      || (keys === '?' && event.target.matches('input, textarea, select'));
    const [action] = SHORTCUTS.find(([, , all]) => all.includes(keys)) ?? [];
    if (!isTaken && action && ({ help, ...actions })[action](event) !== false) event.preventDefault();
  });
}

// SPDX-License-Identifier: MIT
// Dialogs that late parts of the page make themselves, and that go with their end.
import { element, iconButton } from './dom.js';
import { say } from './words.js';

/** Shows a dialog with a title and a close button. @returns {HTMLDialogElement} */
export function showSheet(id, words, ...parts) {
  const close = iconButton('close', say`Close`, () => dialog.close());
  close.className = 'icon-button';
  const title = element('h2', { id: `${id}-title` }, words);
  const dialog = element('dialog', { className: 'sheet', id: `${id}-dialog`, 'aria-labelledby': title.id },
    element('div', { className: 'sheet-head' }, title, close), ...parts);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

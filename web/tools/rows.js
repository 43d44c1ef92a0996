// SPDX-License-Identifier: MIT
// The rows of lists of tools: a title, a sentence, and a switch.
import { element } from '../shell/dom.js';

/** A switch, which is named like its row. @param {(on: boolean) => boolean} change whether it worked */
export function switchOf(title, on, change) {
  const node = element('button', { type: 'button', className: 'switch' }, element('span', { className: 'track' }));
  node.setAttribute('role', 'switch');
  node.setAttribute('aria-label', title);
  const show = () => node.setAttribute('aria-checked', String(on));
  node.onclick = () => {
    if (change(!on)) on = !on;
    show();
  };
  show();
  return node;
}

/** A row with a title, a sentence and what one can do. */
export const row = (title, sentence, ...actions) => {
  const words = [element('strong', { dir: 'auto' }, title), element('p', { dir: 'auto' }, sentence)];
  return element('li', {}, element('div', { className: 'row-text' }, ...words), ...actions);
};

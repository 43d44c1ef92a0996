// SPDX-License-Identifier: MIT
// The small "2/3" with arrows under a message that has siblings.
import { element, iconButton } from '../shell/dom.js';
import { say } from '../shell/words.js';

/** Puts the arrows into a place, and removes old ones. @param {(message: object) => void} onBranch */
export function setBranches(place, siblings, message, onBranch) {
  place.querySelector('.branches')?.remove();
  const node = branches(siblings, message, onBranch);
  if (node) place.prepend(node);
}

/** @returns {Element | null} null if the message has no siblings */
function branches(siblings, message, onBranch) {
  const at = siblings.findIndex(({ id }) => id === message.id);
  if (siblings.length < 2 || at < 0) return null;
  const step = (name, label, to) => {
    const button = iconButton(name, label, () => onBranch(siblings[to]));
    button.disabled = !siblings[to];
    return button;
  };
  const node = element('span', { className: 'branches' }, step('back', say`Earlier version`, at - 1),
    element('span', { className: 'count' }, `${at + 1}/${siblings.length}`), step('next', say`Later version`, at + 1));
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', say`Version ${at + 1} of ${siblings.length}`);
  return node;
}

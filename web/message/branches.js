// SPDX-License-Identifier: MIT
// The small "2/3" with arrows under a message that has others in its place.
import { element, iconButton } from '../shell/dom.js';

/** Puts it into a place that may have one; who stands on an arrow by the keyboard stays there. @param {(message: object) => void} onBranch */
export function setBranches(place, siblings, message, onBranch) {
  const old = place.querySelector('.branches');
  const held = old?.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  old?.remove();
  const node = branches(siblings, message, onBranch);
  if (!node) return;
  place.prepend(node);
  const arrows = [...node.querySelectorAll('button:enabled')];
  if (held) (arrows.find(({ ariaLabel }) => ariaLabel === held) ?? arrows[0]).focus();
}

/** @returns {Element | null} null where there is only one */
function branches(siblings, message, onBranch) {
  const at = siblings.findIndex(({ id }) => id === message.id);
  if (siblings.length < 2 || at < 0) return null;
  const step = (name, label, to) => {
    const button = iconButton(name, label, () => onBranch(siblings[to]));
    button.disabled = !siblings[to];
    return button;
  };
  const node = element('span', { className: 'branches' }, step('back', 'Earlier version', at - 1),
    element('span', { className: 'count' }, `${at + 1}/${siblings.length}`), step('next', 'Later version', at + 1));
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', `Version ${at + 1} of ${siblings.length}`);
  return node;
}

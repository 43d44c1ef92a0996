// SPDX-License-Identifier: MIT
// Suggestions for an empty conversation: questions that the demo model answers well (examples/demo-model). They are in
// the markup, so that nothing moves when the page's scripts have come.
import { byId } from '../shell/dom.js';

/** @param {(text: string) => void} onPick */
export function suggest(onPick) {
  byId('chips').addEventListener('click', ({ target }) => {
    const chip = target.closest('button');
    if (chip) onPick(chip.textContent);
  });
}

// SPDX-License-Identifier: MIT
// Suggestions for an empty conversation.
import { byId, button, element } from '../shell/dom.js';

/** Questions that the demo model answers well (examples/demo-model). */
const SUGGESTIONS = [
  'What is quern?',
  'What is 27 + 45?',
  'What is the capital of Kenya?',
  'Tell me a story about an owl and a golden key.',
];

/** @param {(text: string) => void} onPick */
export function suggest(onPick) {
  byId('chips').append(...SUGGESTIONS.map((text) => element('li', {}, button(text, () => onPick(text), 'chip'))));
}

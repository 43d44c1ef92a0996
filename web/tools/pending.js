// SPDX-License-Identifier: MIT
// What a running call shows beside its name: a question to the visitor, or its progress. Both are of this tab only and
// are never stored with the message.
import { announce, button, element } from '../shell/dom.js';
import { oneLine } from '../shell/format.js';

const cards = new Map();        // id of a call -> the card with its question
const progress = new Map();     // id of a call -> a few letters

/** The card with the question about a call, if there is one. */
export const cardOf = (id) => cards.get(id);

/** The progress of a call; '' if nothing is known. */
export const progressOf = (id) => progress.get(id) ?? '';

/** Notes the progress of a call; '' when it has ended. */
export function setProgress(id, text) {
  if (text) progress.set(id, oneLine(text, 100));
  else progress.delete(id);
}

/**
 * Asks the visitor about a call, in a card below it.
 * @param {string} id of the call
 * @param {Array<[string, any]>} answers words of the buttons, with what they mean
 * @param {AbortSignal} signal takes the question back
 * @param {() => void} onChange shows the card, or shows that it is gone
 * @returns {Promise<any>} the answer; rejects if the question was taken back
 */
export async function askAbout(id, sentence, hint, answers, signal, onChange) {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const end = (how, value) => {
      if (card.contains(document.activeElement)) card.previousElementSibling?.querySelector('summary')?.focus();
      card.remove();
      cards.delete(id);
      how(value);
      onChange();
    };
    const buttons = answers.map(([words, meaning]) => button(words, () => end(resolve, meaning)));
    const card = element('section', { className: 'card asking' },
      element('div', { className: 'card-text' },
        element('p', { className: 'card-message', dir: 'auto' }, sentence),
        element('p', { className: 'card-hint' }, hint)),
      element('div', { className: 'row-actions' }, ...buttons));
    card.dataset.testid = 'permission';
    card.setAttribute('aria-label', sentence);
    cards.set(id, card);
    signal.addEventListener('abort', () => end(reject, signal.reason), { once: true });
    announce(sentence);
    onChange();
  });
}

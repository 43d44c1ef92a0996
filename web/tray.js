// SPDX-License-Identifier: MIT
// The cards above the message field (notices, errors, progress of a load) and the error cards inside the log.
// One card per subject: showing the same subject again replaces the card.
import { byId, button, element, fromTemplate, iconButton } from './dom.js';
import { explain } from './failure.js';
import { bytes, oneLine } from './format.js';

/** A load shorter than this shows no progress: a card that only flashes would make the page jump. */
const PATIENCE_MS = 300;

function card(kind, picture, message, hint, actions) {
  const node = fromTemplate('t-card');
  node.classList.add(kind);
  node.dataset.testid = kind;
  node.querySelector('use').setAttribute('href', `#i-${picture}`);
  node.querySelector('.card-message').textContent = message;
  node.querySelector('.card-hint').textContent = hint;
  node.querySelector('.card-actions').append(...actions);
  return node;
}

/** A card for a failure, announced at once. `actions` are buttons; the code stands small at the end of the hint. */
export function errorCard(error, actions = []) {
  const { message, hint, code } = explain(error);
  const node = card('error', 'alert', message, hint, actions);
  node.setAttribute('role', 'alert');
  if (code) node.querySelector('.card-hint').append(hint ? ' ' : '', element('code', {}, code));
  node.dataset.code = code;
  return node;
}

export class Tray {
  #node = byId('tray');
  #cards = new Map();

  /** A quiet remark. @param {string} subject what it is about; one card per subject */
  notice(subject, message, actions = []) {
    const node = card('notice', 'info', message, '', [...actions, this.#closer(subject)]);
    node.setAttribute('role', 'status');
    this.#put(subject, node);
  }

  error(subject, error, actions = []) {
    this.#put(subject, errorCard(error, [...actions, this.#closer(subject)]));
  }

  remove(subject) {
    this.#cards.get(subject)?.remove();
    this.#cards.delete(subject);
  }

  /** Progress of a load. @returns {(progress: {phase: string, loaded: number, total?: number, cached?: boolean}) => void} */
  progress(subject, name, onCancel) {
    const node = fromTemplate('t-progress');
    const bar = node.querySelector('progress');
    const amount = node.querySelector('.progress-bytes');
    node.querySelector('.progress-name').textContent = oneLine(name, 80);
    bar.setAttribute('aria-label', `Loading ${oneLine(name, 80)}`);
    const cancel = button('Cancel', onCancel, 'button');
    cancel.dataset.testid = 'cancel-load';
    node.querySelector('.card-actions').append(cancel);
    amount.textContent = 'Starting…';
    node.hidden = true;
    setTimeout(() => { node.hidden = false; }, PATIENCE_MS);
    this.#put(subject, node);
    return ({ phase, loaded, total, cached }) => {
      if (total > 0) bar.value = Math.min(1, loaded / total);
      const from = cached ? ' from this browser' : '';
      const verb = phase === 'download' ? '' : 'Preparing ';
      amount.textContent = `${verb}${bytes(loaded)}${total > 0 ? ` of ${bytes(total)}` : ''}${from}`;
    };
  }

  #put(subject, node) {
    const old = this.#cards.get(subject);
    if (old) old.replaceWith(node);
    else this.#node.append(node);
    this.#cards.set(subject, node);
  }

  #closer(subject) {
    return iconButton('close', 'Dismiss', () => this.remove(subject));
  }
}

// SPDX-License-Identifier: MIT
// The cards above the message field (notices, errors, progress of a load) and the error cards inside the log.
// One card per subject: showing the same subject again replaces the card.
import { announce, byId, button, element, fromTemplate, iconButton } from './dom.js';
import { explain } from './failure.js';
import { bytes, duration, oneLine } from './format.js';
import { Pace } from './pace.js';
import { list, say } from './words.js';

/** A load shorter than this shows no progress: a card that only flashes would make the page jump. */
const PATIENCE_MS = 300;

/** Milliseconds between two updates of the pace, so that a stalled download is shown as such. */
const TICK_MS = 1000;

/** A server that has sent nothing for this long counts as slow; it may also have asked to wait (429, 503). */
const SILENT_MS = 4000;

/** @param {number} age of the message, in ms */
function waitingText({ ms, code }, age) {
  if (ms === null) return say`waiting for the network`;
  const seconds = Math.ceil(Math.max(1, ms - age) / 1000);
  return code === 'net/http' ? say`the server is busy, trying again in ${seconds} s`
    : say`waiting for the server, trying again in ${seconds} s`;
}

/** "212 MB of 639 MB", "Preparing 212 MB of 639 MB from this browser" */
function amountText({ phase, loaded, total, cached }) {
  const amount = total > 0 ? say`${bytes(loaded)} of ${bytes(total)}` : bytes(loaded);
  if (phase === 'download') return cached ? say`${amount} from this browser` : amount;
  return cached ? say`Preparing ${amount} from this browser` : say`Preparing ${amount}`;
}

/** "212 MB of 639 MB, 8.1 MB/s, 53 s left" */
function progressText(progress, pace, age) {
  const amount = amountText(progress);
  if (progress.waiting) return list(amount, waitingText(progress.waiting, age));
  const now = pace.read(progress.total);
  if (!now || progress.phase !== 'download') return amount;
  if (now.stalled) return list(amount, say`waiting for the server`);
  return list(amount, say`${bytes(now.speed)}/s`, now.left && say`${duration(Math.max(1000, now.left))} left`);
}

function card(kind, image, message, hint, actions) {
  const node = fromTemplate('t-card');
  node.classList.add(kind);
  node.dataset.testid = kind;
  node.querySelector('use').setAttribute('href', `#i-${image}`);
  node.querySelector('.card-message').textContent = message;
  node.querySelector('.card-hint').textContent = hint;
  node.querySelector('.card-actions').append(...actions);
  return node;
}

/**
 * A card for a failure, announced at once. `actions` are buttons; the code stands small at the end of the hint, before
 * the library's English sentence if the page has another language.
 */
export function errorCard(error, actions = []) {
  const { message, hint, detail, code } = explain(error);
  const node = card('error', 'alert', message, hint, actions);
  node.setAttribute('role', 'alert');
  if (code) node.querySelector('.card-hint').append(hint ? ' ' : '', element('code', {}, code));
  const foreign = element('p', { className: 'card-detail', lang: 'en', dir: 'ltr' }, detail);
  if (detail) node.querySelector('.card-hint').after(foreign);
  node.dataset.code = code;
  return node;
}

export class Tray {
  #node = byId('tray');
  #cards = new Map();

  /** Shows a notice. @param {string} subject of the card @param {() => void} [onDismiss] */
  notice(subject, message, actions = [], onDismiss = undefined) {
    const node = card('notice', 'info', message, '', [...actions, this.#closer(subject, onDismiss)]);
    node.setAttribute('role', 'status');
    this.#put(subject, node);
  }

  /** Shows a notice that disappears by itself. */
  passing(subject, message, actions, ms) {
    this.notice(subject, message, actions);
    const node = this.#cards.get(subject);
    setTimeout(() => { if (this.#cards.get(subject) === node) this.remove(subject); }, ms);
  }

  error(subject, error, actions = []) {
    this.#put(subject, errorCard(error, [...actions, this.#closer(subject)]));
  }

  remove(subject) {
    this.#cards.get(subject)?.remove();
    this.#cards.delete(subject);
  }

  /**
   * Shows the progress of a load.
   * @param {{onCancel: () => void, onPause?: () => void}} actions
   * @returns {(progress: {phase: string, loaded: number, total?: number, cached?: boolean}) => void}
   */
  progress(subject, name, { onCancel, onPause }) {
    const { node, bar, amount } = this.#progressCard(subject, say`Loading ${oneLine(name, 80)}`, name);
    const pause = button(say`Pause`, onPause);
    const cancel = button(say`Cancel`, onCancel);
    pause.dataset.testid = 'pause-load';
    cancel.dataset.testid = 'cancel-load';
    pause.hidden = true;
    node.querySelector('.card-actions').append(pause, cancel);
    amount.textContent = say`Starting…`;
    node.hidden = true;
    setTimeout(() => {
      node.hidden = false;
      node.scrollIntoView({ block: 'nearest' });
    }, PATIENCE_MS);
    const pace = new Pace();
    let latest = null;
    let told = performance.now();
    const show = () => {
      const age = performance.now() - told;
      if (latest) amount.textContent = progressText(latest, pace, age);
      else if (age > SILENT_MS) amount.textContent = say`Waiting for the server…`;
    };
    const ticking = setInterval(() => (node.isConnected ? show() : clearInterval(ticking)), TICK_MS);
    return (progress) => {
      const { phase, loaded, total, cached } = latest = progress;
      told = performance.now();
      if (total > 0) bar.value = Math.min(1, loaded / total);
      pause.hidden = !onPause || phase !== 'download';
      if (phase === 'download' && !cached) pace.add(loaded);
      else pace.reset();
      show();
    };
  }

  /** Shows a paused load. @param {{loaded: number, size: number} | null} kept the stored part */
  paused(subject, name, kept, { onResume, onCancel }) {
    const { node, bar, amount } = this.#progressCard(subject, say`Paused: ${oneLine(name, 80)}`, name);
    const resume = button(say`Resume`, onResume, 'button primary');
    resume.dataset.testid = 'resume-load';
    node.querySelector('.card-actions').append(resume, button(say`Cancel`, onCancel));
    bar.value = kept?.size ? kept.loaded / kept.size : 0;
    const part = kept && (kept.size ? say`${bytes(kept.loaded)} of ${bytes(kept.size)}` : bytes(kept.loaded));
    amount.textContent = kept
      ? say`Paused. ${part} are on this device.`
      : say`Paused. Nothing could be stored, so it will begin again.`;
    announce(amount.textContent);
    resume.focus();
  }

  #progressCard(subject, label, name) {
    const node = fromTemplate('t-progress');
    const bar = node.querySelector('progress');
    node.querySelector('.progress-name').textContent = oneLine(name, 80);
    bar.setAttribute('aria-label', label);
    this.#put(subject, node);
    return { node, bar, amount: node.querySelector('.progress-bytes') };
  }

  #put(subject, node) {
    const old = this.#cards.get(subject);
    if (old) old.replaceWith(node);
    else this.#node.append(node);
    this.#cards.set(subject, node);
    node.scrollIntoView({ block: 'nearest' });      // cards have little room on a low screen
  }

  #closer(subject, onDismiss) {
    return iconButton('close', say`Dismiss`, () => {
      this.remove(subject);
      onDismiss?.();
    });
  }
}

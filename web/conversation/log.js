// SPDX-License-Identifier: MIT
// The messages on the screen: one node for each message of the path, which stays as long as its message does not
// change. A growing reply keeps its node until it has ended; its text is added to that node.
import { AssistantMessage } from '../message/assistant.js';
import { UserMessage } from '../message/user.js';
import { byId } from '../shell/dom.js';
import { say } from '../shell/words.js';

/** Messages at the end that are shown at once. The earlier ones are added above in idle time, MORE at a time. */
const FIRST = 12;
const MORE = 12;

/**
 * When this many are shown, earlier ones wait until the visitor scrolls up, since each one makes the browser lay out
 * all.
 */
const ENOUGH = 240;

export class Log {
  #node = byId('log');
  #scroller = byId('scroller');
  #views = new Map();   // id -> {view, message}; the message is null while it grows
  #actions;
  #talk = null;
  #shown = 0;           // index of the first message that is shown
  #conversation = '';
  #isFilling = false;
  #edited = '';         // id of the message that is being edited

  /**
   * @param {object} actions of a message's buttons: onEdit, onDelete, onAnswer, onAgain, onContinue, onBranch, each
   *   with the message; and helpFor, which returns a remedy for a failed one
   */
  constructor(actions) {
    this.#actions = actions;
    this.#scroller.addEventListener('scroll', () => this.#later());
  }

  /** The view of a message, if it is shown. @returns {AssistantMessage | undefined} */
  viewOf(message) {
    return this.#views.get(message.id)?.view;
  }

  /** Called when a reply has ended: its node now belongs to the finished message. */
  settle(message) {
    const held = this.#views.get(message.id);
    if (!held) return;
    held.view.end(message);
    held.message = { ...message };
  }

  /** @param {import('./talk.js').Talk} talk */
  show(talk) {
    const { path, id } = talk;
    if (id !== this.#conversation || path.length <= this.#shown) this.#shown = Math.max(0, path.length - FIRST);
    this.#talk = talk;
    this.#conversation = id;
    this.#sync();
    this.#later();
  }

  /** Makes sure that a message of the path is among those that are shown. @returns {object} its view */
  reveal(message) {
    const at = this.#talk.path.findIndex(({ id }) => id === message.id);
    if (at < this.#shown) {
      this.#shown = at;
      this.#sync();
    }
    return this.viewOf(message);
  }

  /** @param {string} [id] of the message that is being edited */
  markEdited(id = '') {
    this.#edited = id;
    for (const [other, { view }] of this.#views) view.node.classList.toggle('edited', other === id);
  }

  #later() {
    if (this.#shown === 0 || this.#isFilling) return;
    if (this.#talk.path.length - this.#shown >= ENOUGH && this.#scroller.scrollTop > 2 * this.#scroller.clientHeight)
      return;
    this.#isFilling = true;
    (globalThis.requestIdleCallback ?? setTimeout)(() => {
      this.#isFilling = false;
      if (this.#shown === 0) return;    // another conversation is shown now
      const fromEnd = this.#scroller.scrollHeight - this.#scroller.scrollTop;
      const end = this.#shown;
      this.#shown = Math.max(0, end - MORE);
      this.#put(this.#shown, end, this.#node.firstChild);
      this.#scroller.scrollTop = this.#scroller.scrollHeight - fromEnd;
      this.#later();
    });
  }

  #sync() {
    const ids = new Set(this.#talk.path.slice(this.#shown).map(({ id }) => id));
    const backToPlace = this.#place();
    for (const [id, { view }] of this.#views) {
      if (ids.has(id)) continue;
      view.node.remove();
      this.#views.delete(id);
    }
    this.#put(this.#shown, this.#talk.path.length, null);
    backToPlace();
  }

  /** Shows a part of the path, before a node. */
  #put(start, end, before) {
    let next = before;
    for (const message of this.#talk.path.slice(start, end).reverse()) {
      const { node } = this.#view(message);
      if (node.nextSibling !== next || node.parentNode !== this.#node) this.#node.insertBefore(node, next);
      next = node;
    }
    this.#mark(start, end);
  }

  /**
   * Notes which button of a message has the focus, since the message may be removed.
   * @returns {() => void} focuses the button in its place
   */
  #place() {
    const held = document.activeElement;
    const label = held?.getAttribute('aria-label');
    const at = [...this.#node.children].findIndex((node) => node.contains(held));
    return () => {
      if (at < 0 || held.isConnected) return;
      const buttons = [...this.#node.children[at]?.querySelectorAll('.tools button:enabled') ?? []];
      (buttons.find((node) => node.getAttribute('aria-label') === label) ?? buttons[0])?.focus();
    };
  }

  #view(message) {
    const { run, elsewhere } = this.#talk;
    const grows = run?.message.id === message.id;
    const now = { ...message, elsewhere: elsewhere && !grows && message.writing === true };
    const held = this.#views.get(message.id);
    if (held && (grows ? held.message === null : held.message && same(held.message, now))) return held.view;
    if (held?.message && isMoreOf(held.message, now)) {
      held.view.follow(held.message, now);
      held.message = now;
      return held.view;
    }
    const view = message.role === 'user' ? new UserMessage(message, this.#actions)
      : AssistantMessage.of(message, this.#actions, grows, now.elsewhere);
    if (grows) view.wait(run.says);
    held?.view.node.remove();
    this.#views.set(message.id, { view, message: grows ? null : now });
    return view;
  }

  /** Marks branches, and the messages that the model no longer reads. */
  #mark(start, end) {
    const { path, first } = this.#talk;
    const from = Math.max(0, path.findIndex(({ id }) => id === first));
    for (let i = start; i < end; i++) {
      const message = path[i];
      const { view } = this.#views.get(message.id);
      view.setBranches(this.#talk.siblings(message), message);
      view.node.classList.toggle('left-out', i < from);
      const isFirst = i === from && Boolean(first) && message.id === first;
      view.node.classList.toggle('first-read', isFirst);
      if (isFirst) view.node.dataset.above = say`The model no longer reads the messages above: its context is full.`;
      view.node.classList.toggle('edited', message.id === this.#edited);
      view.node.classList.toggle('last', i === path.length - 1);
    }
  }
}

const same = (a, b) =>
  ['content', 'note', 'writing', 'thinking', 'elsewhere'].every((name) => (a[name] || '') === (b[name] || ''));

/** Whether the only change is text that another tab has added to its reply. */
const isMoreOf = (last, now) =>
  last.elsewhere &&
  now.elsewhere &&
  ['content', 'thinking'].every((name) => now[name].startsWith(last[name])) &&
  JSON.stringify(now.steps) === JSON.stringify(last.steps);

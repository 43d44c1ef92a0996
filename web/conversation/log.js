// SPDX-License-Identifier: MIT
// The messages on the screen: one node for each of the way that is shown, kept as long as its message stays as it is. A reply that grows keeps
// its node until it has ended; who writes it adds to that node, if there is one.
import { AssistantMessage } from '../message/assistant.js';
import { UserMessage } from '../message/user.js';
import { byId } from '../shell/dom.js';

/** Shown at once, from the end; the others follow when there is time, above what is seen. */
const FIRST = 12;
const MORE = 12;

export class Log {
  #node = byId('log');
  #scroller = byId('scroller');
  #views = new Map();   // id -> {view, message}; the message is null while it grows
  #actions;
  #talk = null;
  #shown = 0;           // messages before this one wait
  #conversation = '';

  /**
   * @param {object} actions what a message's buttons do: onEdit, onAnswer, onAgain, onContinue, onBranch, each with the message; and helpFor, which
   * says what could help one that has failed
   */
  constructor(actions) {
    this.#actions = actions;
  }

  /** The node of a reply that grows, if it is shown. @returns {AssistantMessage | undefined} */
  viewOf(message) {
    return this.#views.get(message.id)?.view;
  }

  /** A reply has ended: from now on its node is that of this message. */
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
    if (this.#shown > 0) this.#later(id);
  }

  #later(id) {
    (globalThis.requestIdleCallback ?? setTimeout)(() => {
      if (this.#conversation !== id || this.#shown === 0) return;
      const fromEnd = this.#scroller.scrollHeight - this.#scroller.scrollTop;
      this.#shown = Math.max(0, this.#shown - MORE);
      this.#sync();
      this.#scroller.scrollTop = this.#scroller.scrollHeight - fromEnd;
      this.#later(id);
    });
  }

  #sync() {
    const path = this.#talk.path.slice(this.#shown);
    const ids = new Set(path.map(({ id }) => id));
    const backToPlace = this.#place();
    for (const [id, { view }] of this.#views) {
      if (ids.has(id)) continue;
      view.node.remove();
      this.#views.delete(id);
    }
    let before = null;
    for (const message of path.toReversed()) {
      const { node } = this.#view(message);
      if (node.nextSibling !== before || node.parentNode !== this.#node) this.#node.insertBefore(node, before);
      before = node;
    }
    this.#mark(path);
    backToPlace();
  }

  /** Where the keyboard is: a button of a message, which may go. @returns {() => void} goes to what stands in its place then */
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
    const now = { ...message, elsewhere: elsewhere && message.writing === true };
    const grows = run?.message.id === message.id;
    const held = this.#views.get(message.id);
    if (held && (grows ? held.message === null : held.message && same(held.message, now))) return held.view;
    const view = message.role === 'user' ? new UserMessage(message, this.#actions)
      : AssistantMessage.of(message, this.#actions, grows, now.elsewhere);
    if (grows) view.wait(run.says);
    held?.view.node.remove();
    this.#views.set(message.id, { view, message: grows ? null : now });
    return view;
  }

  /** Branches, and from where on the model reads. */
  #mark(path) {
    const { first } = this.#talk;
    const from = Math.max(0, path.findIndex(({ id }) => id === first));
    path.forEach((message, i) => {
      const { view } = this.#views.get(message.id);
      view.setBranches(this.#talk.siblings(message), message);
      view.node.classList.toggle('left-out', i < from);
      view.node.classList.toggle('first-read', i === from && Boolean(first) && message.id === first);
      view.node.classList.toggle('last', i === path.length - 1);
    });
  }
}

const same = (a, b) => ['content', 'note', 'writing', 'thinking', 'elsewhere'].every((name) => (a[name] || '') === (b[name] || ''));

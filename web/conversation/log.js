// SPDX-License-Identifier: MIT
// The messages on the screen: one node for each of the way that is shown, kept as long as its message stays as it is. The node of a reply
// that grows is not touched from here.
import { AssistantMessage } from '../message/assistant.js';
import { UserMessage } from '../message/user.js';
import { byId } from '../shell/dom.js';

/** Shown at once, from the end; the others follow when there is time, above what is seen. */
const FIRST = 12;
const MORE = 12;

export class Log {
  #node = byId('log');
  #scroller = byId('scroller');
  #views = new Map();   // id -> {view, message}
  #talk;
  #actions;
  #shown = 0;           // messages before this one wait
  #conversation = '';

  /**
   * @param {import('./talk.js').Talk} talk
   * @param {object} actions what a message's buttons do: onEdit, onAnswer, onAgain, onContinue, each with the message
   */
  constructor(talk, actions) {
    this.#talk = talk;
    this.#actions = { ...actions, onBranch: (message) => talk.choose(message) };
  }

  /** The view of a reply that is about to grow; it is shown with its message. */
  grow(message) {
    const view = new AssistantMessage(message, this.#actions);
    this.#views.set(message.id, { view, message: null });
    this.#sync();
    return view;
  }

  /** A reply has ended: from now on its node is that of this message. */
  settle(message) {
    const held = this.#views.get(message.id);
    if (held) held.message = message;
  }

  show() {
    const { path, id } = this.#talk;
    if (id !== this.#conversation || path.length <= this.#shown) this.#shown = Math.max(0, path.length - FIRST);
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
  }

  #view(message) {
    const held = this.#views.get(message.id);
    if (held && (held.message === null || same(held.message, message))) return held.view;
    const view = message.role === 'user' ? new UserMessage(message, this.#actions) : AssistantMessage.of(message, this.#actions);
    held?.view.node.remove();
    this.#views.set(message.id, { view, message });
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

const same = (a, b) => a.content === b.content && a.note === b.note && a.writing === b.writing && a.thinking === b.thinking;

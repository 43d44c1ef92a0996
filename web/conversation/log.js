// SPDX-License-Identifier: MIT
// The messages on the screen: one node for each of the way that is shown, kept as long as its message stays as it is. A
// reply that grows keeps its node until it has ended; who writes it adds to that node, if there is one.
import { AssistantMessage } from '../message/assistant.js';
import { UserMessage } from '../message/user.js';
import { byId } from '../shell/dom.js';

/** Shown at once, from the end; the others follow when there is time, above what is seen. */
const FIRST = 12;
const MORE = 12;

/** When so many are shown the others wait until somebody scrolls up to them: each makes the browser lay out all. */
const ENOUGH = 240;

export class Log {
  #node = byId('log');
  #scroller = byId('scroller');
  #views = new Map();   // id -> {view, message}; the message is null while it grows
  #actions;
  #talk = null;
  #shown = 0;           // messages before this one wait
  #conversation = '';
  #isFilling = false;

  /**
   * @param {object} actions what a message's buttons do: onEdit, onAnswer, onAgain, onContinue, onBranch, each with the
   *   message; and helpFor, which says what could help one that has failed
   */
  constructor(actions) {
    this.#actions = actions;
    this.#scroller.addEventListener('scroll', () => this.#later());
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
    this.#later();
  }

  #later() {
    if (this.#shown === 0 || this.#isFilling) return;
    if (this.#talk.path.length - this.#shown >= ENOUGH && this.#scroller.scrollTop > 2 * this.#scroller.clientHeight)
      return;
    this.#isFilling = true;
    (globalThis.requestIdleCallback ?? setTimeout)(() => {
      this.#isFilling = false;
      if (this.#shown === 0) return;    // another conversation is shown meanwhile
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

  /** Shows a part of the way, before a node. */
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
   * Where the keyboard is: a button of a message, which may go.
   * @returns {() => void} goes to what stands in its place then
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

  /** Branches, and from where on the model reads. */
  #mark(start, end) {
    const { path, first } = this.#talk;
    const from = Math.max(0, path.findIndex(({ id }) => id === first));
    for (let i = start; i < end; i++) {
      const message = path[i];
      const { view } = this.#views.get(message.id);
      view.setBranches(this.#talk.siblings(message), message);
      view.node.classList.toggle('left-out', i < from);
      view.node.classList.toggle('first-read', i === from && Boolean(first) && message.id === first);
      view.node.classList.toggle('last', i === path.length - 1);
    }
  }
}

const same = (a, b) =>
  ['content', 'note', 'writing', 'thinking', 'elsewhere'].every((name) => (a[name] || '') === (b[name] || ''));

/** Whether another tab, which writes a reply, has only added to it. */
const isMoreOf = (last, now) =>
  last.elsewhere &&
  now.elsewhere &&
  ['content', 'thinking'].every((name) => now[name].startsWith(last[name])) &&
  JSON.stringify(now.steps) === JSON.stringify(last.steps);

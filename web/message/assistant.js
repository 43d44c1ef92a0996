// SPDX-License-Identifier: MIT
// How a reply looks while it grows and after. The conversation itself (what is sent, stopped, kept) is chat.js. While a reply grows its
// text is kept from screen readers, which would read every few letters; chat.js announces the finished text once.
import { button, copyButton, element, fromTemplate, iconButton } from '../shell/dom.js';
import { count, duration, speed } from '../shell/format.js';
import { branches } from './branches.js';
import { MarkdownStream } from './stream.js';
import { errorCard } from '../shell/tray.js';

/** Why a reply ended, where that is worth a line. */
const ENDINGS = {
  length: 'Cut off: the longest reply or the end of the context was reached.',
  aborted: 'Stopped.',
};

/** Under a reply whose tab was closed while it was written. */
const INTERRUPTED = 'Interrupted: the page was closed.';

export class AssistantMessage {
  node = fromTemplate('t-assistant');
  thinking = '';
  thoughtMs = 0;
  note = '';
  #stream = new MarkdownStream(this.#part('.prose'));
  #details = this.#part('details');
  #thought = document.createTextNode('');
  #thoughtStart = 0;
  #actions;
  #goOn;
  #touched = false;  // the visitor opened or closed the thinking: leave it so

  /** @param {object} message which this shows @param {{onAgain: Function, onContinue: Function, onBranch: Function}} actions */
  constructor(message, actions) {
    this.#actions = actions;
    this.#goOn = iconButton('go-on', 'Continue this reply', () => actions.onContinue(message));
    this.#goOn.classList.add('only-last');
    this.#goOn.hidden = true;
    this.#part('.tools').append(copyButton(() => this.text, 'Copy reply'),
      iconButton('retry', 'Write this reply again', () => actions.onAgain(message)), this.#goOn,
      element('span', { className: 'caption' }));
    this.#part('.thought').append(this.#thought);
    this.#part('summary').addEventListener('click', () => { this.#touched = true; });
    this.#setBusy(true);
  }

  /** A stored reply. */
  static of(message, actions) {
    const view = new AssistantMessage(message, actions);
    view.resume(message);
    view.finish({ note: message.note || (message.writing ? INTERRUPTED : '') });
    view.caption(message);
    return view;
  }

  /** The reply as markdown. */
  get text() {
    return this.#stream.text;
  }

  /** What is going on before the first word. */
  wait(sentence) {
    this.#part('.waiting').textContent = sentence;
  }

  /** One event of the reply. */
  push({ type, text }) {
    this.wait('');
    if (type === 'thinking') this.#think(text);
    if (type !== 'text') return;
    this.#endThought();
    this.#stream.append(text);
  }

  /** The reply is complete; `note` overrides the line that says why it ended. */
  finish({ finishReason = 'stop', note = ENDINGS[finishReason] ?? '' }) {
    this.#endThought();
    this.#setBusy(false);
    this.wait('');
    const silent = !this.text.trim() && !note ? 'The model had nothing to say.' : note;
    this.#aside(silent);
    this.note = note;
    this.#goOn.hidden = !note;
    return this.#stream.finish();
  }

  /** The reply failed; what was already written stays. */
  fail(error, onRetry, label = 'Try again') {
    this.finish({ note: '' });
    this.#aside('');
    this.#part('.tools').hidden = !this.text;
    this.#part('.tools').before(errorCard(error, onRetry ? [button(label, onRetry)] : []));
  }

  /** What there is of a reply that goes on. */
  resume({ content, thinking, thoughtMs }) {
    if (thinking) this.#think(thinking);
    if (content) {
      this.#endThought();
      this.#stream.append(content);
    }
    if (!thinking) return;
    this.thoughtMs = thoughtMs;
    if (content) this.#summarise();
  }

  /** Who wrote this, and how fast. */
  caption({ model, speed: tokensPerSecond }) {
    this.#part('.caption').textContent = [model, speed(tokensPerSecond)].filter(Boolean).join(' · ');
  }

  setBranches(siblings, message) {
    this.#part('.branches')?.remove();
    const node = branches(siblings, message, this.#actions.onBranch);
    if (node) this.#part('.tools').prepend(node);
  }

  /** Numbers of the finished reply, for those who hover over its foot. */
  describe({ usage, timings }) {
    const cached = usage.cachedTokens ? `, ${count(usage.cachedTokens)} of them known already` : '';
    this.#part('.tools').title = `Read ${count(usage.promptTokens)} tokens${cached} in ${duration(timings.prefillMs)}; `
      + `wrote ${count(usage.completionTokens)} in ${duration(timings.decodeMs)}`;
  }

  #part(selector) {
    return this.node.querySelector(selector);
  }

  #think(text) {
    if (!this.#thoughtStart) {
      this.#thoughtStart = performance.now();
      this.#details.hidden = false;
      this.#details.open = true;
      this.#part('summary').textContent = 'Thinking…';
    }
    this.thinking += text;
    this.#thought.appendData(this.thinking.length === text.length ? text.trimStart() : text);
  }

  #endThought() {
    if (!this.#thoughtStart || this.thoughtMs) return;
    this.thoughtMs = performance.now() - this.#thoughtStart;
    if (!this.#touched) this.#details.open = false;
    this.#summarise();
  }

  #summarise() {
    this.#part('summary').textContent = this.thoughtMs >= 100 ? `Thought for ${duration(this.thoughtMs)}` : 'Thought for a moment';
  }

  #aside(text) {
    const line = this.#part('.aside');
    line.textContent = text;
    line.hidden = !text;
  }

  #setBusy(busy) {
    this.node.classList.toggle('busy', busy);
    this.node.setAttribute('aria-busy', String(busy));
    for (const selector of ['.prose', '.thought', '.waiting']) {
      if (busy) this.#part(selector).setAttribute('aria-live', 'off');
      else this.#part(selector).removeAttribute('aria-live');
    }
  }
}

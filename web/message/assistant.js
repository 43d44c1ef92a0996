// SPDX-License-Identifier: MIT
// Shows a reply while it grows and afterwards; its content is in its message. While it grows, its text is hidden from
// screen readers, which would read every few letters. The finished text is announced once.
import { button, copyButton, element, fromTemplate, iconButton } from '../shell/dom.js';
import { duration, speed } from '../shell/format.js';
import { isolated, joined, say, sayOf } from '../shell/words.js';
import { setBranches } from './branches.js';
import { MarkdownStream } from './stream.js';
import { errorCard } from '../shell/tray.js';
import { showCalls } from './tools.js';

/** Notes under an unfinished reply. */
const INTERRUPTED = say`Interrupted: the page was closed.`;
const ELSEWHERE = say`Being written in another tab.`;

let voices;

/** Resolves when the browser has voices of this device, which it tells late. */
const whenVoices = () => (voices ??= new Promise((done) => {
  const { speechSynthesis: speech } = globalThis;
  const look = () => { if (speech?.getVoices().some((voice) => voice.localService)) done(); };
  speech?.addEventListener?.('voiceschanged', look);
  look();
}));

export class AssistantMessage {
  node = fromTemplate('t-assistant');
  #stream = new MarkdownStream(this.#part('.prose'));
  #details = this.#part('details');
  #thought = document.createTextNode('');
  #isThinking = false;
  #actions;
  #goOn;
  #touched = false;  // the visitor has opened or closed the thinking, which then stays so

  /**
   * @param {object} message that is shown
   * @param {object} actions onAgain, onEdit, onDelete, onContinue, onBranch, each with the message; helpFor returns
   *   a remedy
   */
  constructor(message, actions) {
    this.#actions = actions;
    this.#goOn = iconButton('go-on', say`Continue this reply`, () => actions.onContinue(message));
    this.#goOn.classList.add('only-last');
    this.#goOn.hidden = true;
    this.#part('.tools').append(copyButton(() => this.#stream.text, say`Copy reply`, () => this.#html()),
      iconButton('retry', say`Write this reply again`, () => actions.onAgain(message)),
      iconButton('edit', say`Edit this reply`, () => actions.onEdit(message)),
      iconButton('delete', say`Delete from here on`, () => actions.onDelete(message)), this.#goOn,
      element('span', { className: 'caption' }));
    this.#part('.thought').append(this.#thought);
    this.#part('summary').addEventListener('click', () => { this.#touched = true; });
    this.#setBusy(true);
  }

  /**
   * A view of a reply in its present state.
   * @param {boolean} grows whether more will come
   * @param {boolean} elsewhere whether another tab writes it
   */
  static of(message, actions, grows, elsewhere) {
    const view = new AssistantMessage(message, actions);
    for (const { thinking, content } of message.steps ?? []) view.#said(thinking, content, message);
    view.#said(message.thinking, message.content, message);
    if (message.steps) showCalls(view.node, message);
    if (elsewhere) view.#aside(ELSEWHERE);
    else if (!grows) view.end(message);
    return view;
  }

  /** Adds the text that another tab has written since. */
  follow(last, message) {
    this.#said(message.thinking.slice(last.thinking.length), message.content.slice(last.content.length), message);
  }

  #said(thinking, content, message) {
    if (thinking) this.push({ type: 'thinking', text: thinking }, message);
    if (content) this.push({ type: 'text', text: content }, message);
  }

  /** Shows a sentence about the progress before the first word. */
  wait(sentence) {
    this.#part('.waiting').textContent = sentence;
  }

  /** Shows one event of the reply, which its message already contains. */
  push({ type, text }, message) {
    if (type === 'thinking') this.#think(text);
    else if (type !== 'text') showCalls(this.node, message);
    if (type !== 'text') return;
    this.#endThought(message.thoughtMs);
    this.#stream.append(text);
  }

  /** Shows the finished reply. */
  end(message) {
    const { content, thoughtMs, note, writing, error, steps } = message;
    if (steps) showCalls(this.node, message, true);
    const why = error ? '' : joined(...note.split('\n').map((one) => sayOf(one))) || (writing ? INTERRUPTED : '');
    this.#endThought(thoughtMs);
    this.#setBusy(false);
    this.wait('');
    this.#aside(why || error || content.trim() ? why : say`The model had nothing to say.`);
    this.#goOn.hidden = !why;
    this.#stream.finish();
    if (error) this.#fail(message);
    else this.#describe(message);
    const withVoices = () => whenVoices().then(() => import('./late/read-aloud.js'));
    if (content) withVoices().then(({ offerToRead }) => offerToRead(this.node), () => {});
  }

  setBranches(siblings, message) {
    setBranches(this.#part('.tools'), siblings, message, this.#actions.onBranch);
  }

  /** Shows a failure. The text before it stays. */
  #fail(message) {
    const { label, run } = this.#actions.helpFor(message);
    this.#part('.tools').hidden = !message.content;
    this.#part('.tools').before(errorCard(message.error, [button(label, run)]));
  }

  /** Shows the model and the speed; more numbers of a new reply appear in the tooltip. */
  #describe({ model, speed: tokensPerSecond, usage, timings }) {
    this.#part('.caption').textContent = [model, speed(tokensPerSecond)].filter(Boolean).map(isolated).join(' · ');
    if (!usage) return;
    const { promptTokens: read, cachedTokens: known, completionTokens: wrote } = usage;
    const [readIn, wroteIn] = [timings.prefillMs, timings.decodeMs].map(duration);
    this.#part('.tools').title = known
      ? say`Read ${read} tokens, ${known} of them known already in ${readIn}; wrote ${wrote} in ${wroteIn}`
      : say`Read ${read} tokens in ${readIn}; wrote ${wrote} in ${wroteIn}`;
  }

  async #html() {
    const { htmlOf } = await import('./late/rich-copy.js');
    return htmlOf(this.#part('.prose'));
  }

  #part(selector) {
    return this.node.querySelector(selector);
  }

  #think(text) {
    if (!this.#isThinking) {
      this.#isThinking = true;
      this.#details.hidden = false;
      this.#details.open = true;
      this.#part('summary').textContent = say`Thinking…`;
      if (this.#thought.length) this.#thought.appendData('\n\n');
    }
    this.#thought.appendData(this.#thought.length ? text : text.trimStart());
  }

  #endThought(thoughtMs) {
    if (!this.#isThinking) return;
    this.#isThinking = false;
    if (!this.#touched) this.#details.open = false;
    this.#part('summary').textContent =
      thoughtMs >= 100 ? say`Thought for ${duration(thoughtMs)}` : say`Thought for a moment`;
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

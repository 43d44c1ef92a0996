// SPDX-License-Identifier: MIT
// One running reply, shown or not: its text, its progress, and its end. The message object grows in place, and views
// follow it.
import { QuernError } from 'quern';
import { key, say } from '../shell/words.js';

/** An engine that has not stopped this long after the request (it promises 200 ms) counts as lost. */
const STOP_MS = 5000;

/** A reply that waits for less than this shows no sentence about it. */
const PATIENCE_MS = 300;

/** A reply with fewer tokens has no speed: its time is that of single steps. */
const LEAST_TOKENS = 16;

/** Sentences about the ends that need one. They are stored in English, and shown in the page's language. */
const ENDINGS = {
  length: key('Cut off: the longest reply was reached.'),
  context: key('Cut off: the end of the context was reached.'),
  aborted: key('Stopped.'),
};

export class Run {
  message;
  model = null;           // the model that writes it, once there is one
  phase = 'waiting';      // then 'looking', 'reading', 'thinking' or 'writing', finally 'over'
  says = '';              // sentence about the progress before the first word
  meter = {};             // {used, tokensPerSecond}, as far as known
  #giveUp;
  lost = new Promise((_, reject) => { this.#giveUp = reject; });
  #ended = new Promise((resolve) => { this.end = resolve; });
  #abort = new AbortController();
  #onChange;
  #reply = null;
  #count = { prompt: 0, tokens: 0, start: 0 };
  #thoughtFrom = 0;

  /**
   * @param {object} message which grows
   * @param {(isPhase: boolean) => void} onChange called for another phase, or only for another sentence
   */
  constructor(message, onChange) {
    Object.assign(message, { writing: true, note: '', error: undefined });
    this.message = message;
    this.#onChange = onChange;
    this.lost.catch(() => {});
  }

  /** Aborts all waiting before the model begins. */
  get signal() { return this.#abort.signal; }

  /** Sets the sentence about what the reply waits for. */
  wait(sentence) {
    this.#to('waiting', sentence);
  }

  /** Called when the model has been asked. */
  ask(reply) {
    this.#reply = reply;
    this.wait('');
    setTimeout(() => { if (this.phase === 'waiting') this.wait(say`Waiting for its turn…`); }, PATIENCE_MS);
  }

  /** Notes the progress of reading images or the prompt. */
  read({ phase, done, total, image, images }) {
    if (phase === 'vision') {
      const percent = Math.floor((100 * done) / total);
      return this.#to('looking', images > 1
        ? say`Looking at image ${image} of ${images}… ${percent} %`
        : say`Looking… ${percent} %`);
    }
    this.#count.prompt = this.meter.used = total;
    return this.#to('reading', done < total ? say`Reading ${done} of ${total} tokens` : '');
  }

  /** Takes one event of the reply, about a token. */
  take({ type, text }) {
    const { message } = this;
    const now = performance.now();
    this.#thoughtFrom ||= now;
    if (type === 'thinking') message.thinking += text;
    else this.#endThought();
    if (type === 'text') message.content += text;
    const of = this.#count;
    of.start ||= now;
    of.tokens++;
    this.meter.used = of.prompt + of.tokens;
    if (of.tokens >= LEAST_TOKENS) this.meter.tokensPerSecond = ((of.tokens - 1) * 1000) / (now - of.start);
    this.#to(type === 'thinking' ? 'thinking' : 'writing', '');
  }

  /** Completes the message. @param {object} result of the library, or the known part of it */
  finish({ finishReason, usage, timings, unfinishedCall }) {
    this.#close();
    const { name } = unfinishedCall ?? {};
    const cut = name ? say`The call of ${name} was cut off.` : unfinishedCall && key('The call of a tool was cut off.');
    const note = [ENDINGS[finishReason], cut].filter(Boolean).join('\n');
    const speed = usage?.completionTokens >= LEAST_TOKENS ? timings?.tokensPerSecond ?? 0 : 0;
    Object.assign(this.message, { writing: false, note, speed, usage, timings });
    if (usage)
      Object.assign(this.meter, {
        used: usage.promptTokens + usage.completionTokens,
        tokensPerSecond: speed,
      });
  }

  /** Ends the reply with an error. Its text stays. */
  fail(error) {
    this.#close();
    Object.assign(this.message, { writing: false, note: key('Failed before it was finished.'), error });
  }

  /** Ends the reply. Its text stays. A reply that has not begun ends at once. Resolves when the message is stored. */
  async stop() {
    if (this.phase === 'waiting') this.#abort.abort();
    this.#reply?.stop();
    const timer = setTimeout(
      () => this.#giveUp(new QuernError('engine/lost', 'The engine no longer answers.')),
      STOP_MS,
    );
    await this.#ended;
    clearTimeout(timer);
  }

  #endThought() {
    const { message } = this;
    if (message.thinking) message.thoughtMs ||= performance.now() - this.#thoughtFrom;
  }

  #close() {
    this.#endThought();
    this.phase = 'over';
  }

  #to(phase, says) {
    if (this.phase === 'over' || (phase === this.phase && says === this.says)) return;
    const isPhase = phase !== this.phase;
    this.phase = phase;
    this.says = says;
    this.#onChange(isPhase);
  }
}

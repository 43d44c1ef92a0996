// SPDX-License-Identifier: MIT
// One reply under way, shown or not: what there is of it, how far it is, and how it is ended. The message grows in
// place; who shows it follows.
import { QuernError } from 'quern';
import { count } from '../shell/format.js';

/** An engine that has not stopped this long after it was asked to (it promises 200 ms) is given up. */
const STOP_MS = 5000;

/** A turn that comes sooner than this is none to speak of. */
const PATIENCE_MS = 300;

/** Why a reply ended, where that is worth a line. */
const ENDINGS = {
  length: 'Cut off: the longest reply was reached.',
  context: 'Cut off: the end of the context was reached.',
  aborted: 'Stopped.',
};

export class Run {
  message;
  model = null;           // who writes it, once there is one
  phase = 'waiting';      // then 'looking', 'reading', 'thinking' or 'writing', in the end 'over'
  says = '';              // what is going on before the first word
  meter = {};             // {used, tokensPerSecond}, as far as they are known
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
   * @param {(isPhase: boolean) => void} onChange another phase, or only another thing to say
   */
  constructor(message, onChange) {
    Object.assign(message, { writing: true, note: '', error: undefined });
    this.message = message;
    this.#onChange = onChange;
    this.lost.catch(() => {});
  }

  /** Ends all waiting before the model begins. */
  get signal() { return this.#abort.signal; }

  /** Says what is waited for. */
  wait(sentence) {
    this.#to('waiting', sentence);
  }

  /** The model has been asked. */
  ask(reply) {
    this.#reply = reply;
    this.wait('');
    setTimeout(() => { if (this.phase === 'waiting') this.wait('Waiting for its turn…'); }, PATIENCE_MS);
  }

  /** So much of the images is seen, or of the prompt read. */
  read({ phase, done, total, image, images }) {
    if (phase === 'vision') {
      const which = images > 1 ? ` at image ${image} of ${images}` : '';
      return this.#to('looking', `Looking${which}… ${Math.floor((100 * done) / total)} %`);
    }
    this.#count.prompt = this.meter.used = total;
    return this.#to('reading', done < total ? `Reading ${count(done)} of ${count(total)} tokens` : '');
  }

  /** One event of the reply, about a token. The first ones say nothing about speed yet. */
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
    if (of.tokens > 4) this.meter.tokensPerSecond = ((of.tokens - 1) * 1000) / (now - of.start);
    this.#to(type === 'thinking' ? 'thinking' : 'writing', '');
  }

  /** The message is as it stays. @param {object} result of the library, or what is known of it */
  finish({ finishReason, usage, timings }) {
    this.#close();
    const speed = timings?.tokensPerSecond ?? 0;
    Object.assign(this.message, { writing: false, note: ENDINGS[finishReason] ?? '', speed, usage, timings });
    if (usage)
      Object.assign(this.meter, {
        used: usage.promptTokens + usage.completionTokens,
        ...(speed && { tokensPerSecond: speed }),
      });
  }

  /** What was written stays. */
  fail(error) {
    this.#close();
    Object.assign(this.message, { writing: false, note: 'Failed before it was finished.', error });
  }

  /** Ends it, keeping what is written; who has not begun is not waited for. Resolves when it is stored. */
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

// SPDX-License-Identifier: MIT
// Asking and answering: one reply at a time, streamed, stored as it grows, stopped, written again, continued. The library is stateless, so
// every turn hands it what the model reads of the conversation; it finds the known beginning itself.
import { QuernError } from 'quern';
import { announce } from '../shell/dom.js';
import { codeOf, isAbort } from '../shell/failure.js';
import { count } from '../shell/format.js';
import { Log } from './log.js';
import { makeRoom } from './room.js';

/** An engine that has not stopped this long after it was asked to (it promises 200 ms) is given up. */
const STOP_MS = 5000;

/** How often a growing reply is stored, in ms: what a tab that dies loses of it. */
const STORE_MS = 400;

/** One answer under way: where its end is announced, and how it can be ended from outside. */
class Run {
  reply = null;
  abort = new AbortController();
  lost = new Promise((_, reject) => { this.giveUp = reject; });
  ended = new Promise((resolve) => { this.end = resolve; });

  constructor() {
    this.lost.catch(() => {});
  }

  async stop() {
    this.abort.abort();
    this.reply?.stop();
    const timer = setTimeout(() => this.giveUp(new QuernError('engine/lost', 'The engine no longer answers.')), STOP_MS);
    await this.ended;
    clearTimeout(timer);
  }
}

export class Chat {
  #talk;
  #log;
  #archive;
  #run = null;
  #held = null;     // until it settles this tab has the conversation for itself
  #session;
  #settings;
  #events;

  /**
   * @param {import('./talk.js').Talk} talk
   * @param {import('./archive.js').Archive} archive
   * @param {import('../model/session.js').Session} session
   * @param {import('../shell/settings.js').Settings} settings
   * @param {object} events
   * @param {() => void} events.onChange a reply began or ended
   * @param {(numbers: {used?: number, tokensPerSecond?: number}) => void} events.onMeter
   * @param {(sentence: string) => void} events.onStatus
   * @param {(message: object) => void} events.onEdit a message goes into the field
   * @param {(error: Error) => ?{label: string, run: Function}} events.onFailure what could help, if not a retry
   */
  constructor(talk, archive, session, settings, events) {
    this.#talk = talk;
    this.#archive = archive;
    this.#session = session;
    this.#settings = settings;
    this.#events = events;
    this.#log = new Log(talk, {
      onEdit: events.onEdit,
      onAnswer: (message) => this.#again(message.id),
      onAgain: (message) => this.#again(message.parent),
      onContinue: ({ id }) => this.#continue(id),
    });
  }

  get isRunning() { return this.#run !== null; }

  /** The conversation, or which one it is, has changed. */
  show() {
    this.#log.show();
  }

  /**
   * Asks, and answers.
   * @param {{parent: string}} [instead] of this message: then it is a branch of its own
   * @returns {Promise<boolean>} false when it could not be sent: another tab is writing in this conversation
   */
  async send(content, instead) {
    if (this.isRunning && !instead) return false;
    await this.stop();
    this.#talk.begin();
    return this.#alone(() => this.#write(this.#talk.reply(this.#talk.ask(content, instead?.parent).id), false));
  }

  /** Answers the last question once more. */
  regenerate() {
    const question = this.#talk.path.findLast(({ role }) => role === 'user');
    return question && this.#again(question.id);
  }

  /** Shows how much of the context the conversation takes. */
  async measure() {
    const { model } = this.#session;
    if (!model || this.isRunning || this.#talk.isEmpty) return;
    const used = await model.countTokens(this.#messages({}, false)).catch(() => 0);
    if (!this.isRunning) this.#events.onMeter({ used });
  }

  /** Ends the running reply, keeping what is written. Resolves when the model is free. */
  async stop() {
    await this.#run?.stop();
    await this.#held;
  }

  async #again(question) {
    await this.stop();
    await this.#alone(() => this.#write(this.#talk.reply(question), false));
  }

  async #continue(id) {
    await this.stop();
    const message = this.#talk.path.find((one) => one.id === id);
    if (message) await this.#alone(() => this.#write(message, true));
  }

  /** No other tab writes in this conversation meanwhile. */
  async #alone(work) {
    this.#held = this.#archive.alone(this.#talk.id, work);
    const free = await this.#held;
    if (!free) this.#events.onStatus('Another tab is writing in this conversation');
    return free;
  }

  async #write(message, goesOn) {
    const view = this.#log.grow(message);
    const run = new Run();
    this.#run = run;
    this.#talk.isHeld = true;
    if (goesOn) view.resume(message);
    this.#log.show();
    this.#events.onChange();
    const clock = setInterval(() => this.#keep(message, view, {}), STORE_MS);
    try {
      this.#conclude(message, view, await Promise.race([this.#generate(run, view, message, goesOn), run.lost]));
    } catch (error) {
      if (isAbort(error)) this.#conclude(message, view, { finishReason: 'aborted' });
      else this.#fail(message, view, error);
    } finally {
      clearInterval(clock);
      this.#run = null;
      this.#talk.isHeld = false;
      await this.#talk.stored();
      run.end();
      this.#events.onChange();
    }
  }

  async #generate(run, view, message, goesOn) {
    if (!this.#session.model) view.wait('Waiting for the model…');
    const model = await this.#session.ready(run.abort.signal);
    const messages = () => this.#messages(message, goesOn);
    await makeRoom(this.#talk, model, messages);
    for (;;) {
      try {
        return await this.#stream(model, run, view, messages(), goesOn);
      } catch (error) {
        if (codeOf(error) !== 'use/context' || !this.#talk.leaveOut()) throw error;
      }
    }
  }

  /** What is sent: an unanswered or empty turn says nothing to the model. */
  #messages(message, goesOn) {
    const turns = this.#talk.read.filter(({ id, content }) => (id === message.id ? goesOn : content));
    const messages = turns.map(({ role, content, thinking }) => (thinking ? { role, content, thinking } : { role, content }));
    return this.#settings.system ? [{ role: 'system', content: this.#settings.system }, ...messages] : messages;
  }

  async #stream(model, run, view, messages, goesOn) {
    const meter = { prompt: 0, tokens: 0, start: 0 };
    const onPrefill = ({ done, total }) => {
      meter.prompt = total;
      view.wait(done < total ? `Reading ${count(done)} of ${count(total)} tokens` : '');
      this.#events.onMeter({ used: total });
    };
    this.#events.onStatus('Reading');
    view.wait('');
    run.reply = model.chat(messages, { ...this.#settings.sampling, continue: goesOn, onPrefill });
    if (run.abort.signal.aborted) run.reply.stop();
    for await (const event of run.reply.events) {
      view.push(event);
      this.#measure(meter, event.type);
    }
    const result = await run.reply.result;
    const used = result.usage.promptTokens + result.usage.completionTokens;
    this.#events.onMeter({ used, tokensPerSecond: result.timings.tokensPerSecond || undefined });
    return result;
  }

  /** Running numbers; an event is about a token. The first ones say nothing about speed yet. */
  #measure(meter, type) {
    const now = performance.now();
    meter.start ||= now;
    meter.tokens++;
    this.#events.onStatus(type === 'thinking' ? 'Thinking' : 'Writing');
    const tokensPerSecond = meter.tokens > 4 ? ((meter.tokens - 1) * 1000) / (now - meter.start) : undefined;
    this.#events.onMeter({ used: meter.prompt + meter.tokens, tokensPerSecond });
  }

  /** Stores the reply as it is now. */
  #keep(message, view, fields) {
    const { text: content, thinking, thoughtMs, note } = view;
    if (!content && !thinking && !Object.keys(fields).length) return null;
    const kept = { ...message, content, thinking, thoughtMs, note, model: this.#session.choice?.label ?? '', ...fields };
    this.#talk.update(kept);
    return kept;
  }

  /** A reply that ended well or was stopped becomes part of the conversation. */
  #conclude(message, view, result) {
    view.finish(result);
    const kept = this.#keep(message, view, { speed: result.timings?.tokensPerSecond ?? 0, writing: false });
    if (result.usage) view.describe(result);
    view.caption(kept);
    this.#log.settle(kept);
    const stopped = result.finishReason === 'aborted';
    this.#events.onStatus(stopped ? 'Stopped' : 'Ready');
    announce(stopped ? 'Stopped.' : `Reply: ${view.text.slice(0, 2000)}`);
  }

  /** What was written stays; a reply of which nothing was is no part of the conversation. */
  #fail(message, view, error) {
    const help = this.#events.onFailure(error);
    view.fail(error, help ? help.run : () => this.#again(message.parent), help?.label);
    if (view.text || view.thinking) this.#log.settle(this.#keep(message, view, { writing: false, note: 'Failed before it was finished.' }));
    else this.#talk.takeBack(message);
    this.#events.onStatus('Failed');
  }
}

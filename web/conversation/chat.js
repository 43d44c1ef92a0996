// SPDX-License-Identifier: MIT
// Asking and answering: one reply at a time, streamed, stopped, written again. The library is stateless, so every
// turn hands it the whole conversation (turns.js); it finds the known beginning itself.
import { QuernError } from 'quern';
import { announce, byId } from '../shell/dom.js';
import { codeOf, isAbort } from '../shell/failure.js';
import { count } from '../shell/format.js';
import { AssistantMessage, userMessage } from '../message/message.js';
import { readChat } from './store.js';
import { Turns } from './turns.js';

/** An engine that has not stopped this long after it was asked to (it promises 200 ms) is given up. */
const STOP_MS = 5000;

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
  #turns = new Turns();
  #run = null;
  #session;
  #settings;
  #events;

  /**
   * @param {import('../model/session.js').Session} session
   * @param {import('../shell/settings.js').Settings} settings
   * @param {object} events
   * @param {() => void} events.onChange a reply began or ended, or the conversation changed
   * @param {(numbers: {used?: number, tokensPerSecond?: number}) => void} events.onMeter
   * @param {(sentence: string) => void} events.onStatus
   * @param {(text: string) => void} events.onEdit the last message goes back into the field
   * @param {(error: Error) => ?{label: string, run: Function}} events.onFailure what could help, if not a retry
   * @param {() => void} events.onUnsaved
   */
  constructor(session, settings, events) {
    this.#session = session;
    this.#settings = settings;
    this.#events = events;
    for (const message of readChat()) this.#restore(message);
  }

  get isRunning() { return this.#run !== null; }
  get isEmpty() { return this.#turns.isEmpty; }
  get title() { return this.#turns.title; }
  get lastQuestion() { return this.#turns.content(this.#turns.lastQuestion); }

  async send(content) {
    if (this.isRunning) return;
    this.#ask(content);
    this.#save();
    await this.#answer();
  }

  /** Sends the visitor's last message in another wording: it and its reply are taken back. */
  async resend(content) {
    await this.stop();
    this.#truncate(this.#turns.lastQuestion);
    await this.send(content);
  }

  /** Answers the last message once more. */
  async regenerate() {
    await this.stop();
    const last = this.#turns.lastQuestion;
    if (last < 0) return;
    this.#truncate(last + 1);
    await this.#answer();
  }

  /** Puts the last message back into the field, to be sent in another wording. */
  edit() {
    this.#events.onEdit(this.#turns.content(this.#turns.lastQuestion));
  }

  /** Ends the running reply, keeping what is written. Resolves when the model is free. */
  async stop() {
    await this.#run?.stop();
  }

  async reset() {
    await this.stop();
    this.#truncate(0);
    this.#turns.setUsed(0);
    this.#save();
    this.#events.onMeter({ used: 0, tokensPerSecond: 0 });
  }

  /** Another model has read nothing yet. */
  modelChanged() {
    this.#turns.setUsed(0);
  }

  #restore(message) {
    if (message.role === 'user') return this.#ask(message.content);
    const view = this.#newReply();
    view.restore(message);
    return this.#turns.add({ ...message, node: view.node });
  }

  #ask(content) {
    this.#turns.add({ role: 'user', content, node: userMessage(content, () => this.edit()) });
  }

  #newReply() {
    return new AssistantMessage({ onRegenerate: () => this.regenerate() });
  }

  #truncate(index) {
    this.#turns.truncate(index);
    this.#events.onChange();
  }

  async #answer() {
    const view = this.#newReply();
    const run = new Run();
    this.#run = run;
    byId('log').append(view.node);
    this.#events.onChange();
    try {
      this.#conclude(view, await Promise.race([this.#generate(run, view), run.lost]));
    } catch (error) {
      if (isAbort(error)) this.#conclude(view, { finishReason: 'aborted' });
      else this.#fail(view, error);
    } finally {
      this.#run = null;
      run.end();
      this.#events.onChange();
    }
  }

  async #generate(run, view) {
    if (!this.#session.model) view.wait('Waiting for the model…');
    const model = await this.#session.ready(run.abort.signal);
    this.#turns.makeRoom(model.info.contextSize);
    for (;;) {
      try {
        return await this.#stream(model, run, view);
      } catch (error) {
        if (codeOf(error) !== 'use/context' || !this.#turns.leaveOut()) throw error;
      }
    }
  }

  async #stream(model, run, view) {
    const meter = { prompt: 0, tokens: 0, start: 0 };
    const onPrefill = ({ done, total }) => {
      meter.prompt = total;
      view.wait(done < total ? `Reading ${count(done)} of ${count(total)} tokens` : '');
      this.#events.onMeter({ used: total });
    };
    this.#events.onStatus('Reading');
    view.wait('');
    run.reply = model.chat(this.#turns.prompt(this.#settings.system), { ...this.#settings.sampling, onPrefill });
    if (run.abort.signal.aborted) run.reply.stop();
    for await (const event of run.reply.events) {
      view.push(event);
      this.#measure(meter, event.type);
    }
    const result = await run.reply.result;
    const used = result.usage.promptTokens + result.usage.completionTokens;
    this.#turns.setUsed(used);
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

  /** A reply that ended well or was stopped becomes part of the conversation. */
  #conclude(view, result) {
    view.finish(result);
    if (result.usage) view.describe(result);
    const { text: content, thinking, thoughtMs, note, node } = view;
    this.#turns.add({ role: 'assistant', content, thinking, thoughtMs, note, node });
    this.#save();
    const stopped = result.finishReason === 'aborted';
    this.#events.onStatus(stopped ? 'Stopped' : 'Ready');
    announce(stopped ? 'Stopped.' : `Reply: ${content.slice(0, 2000)}`);
  }

  #fail(view, error) {
    const help = this.#events.onFailure(error);
    view.fail(error, help ? help.run : () => this.regenerate(), help?.label);
    this.#events.onStatus('Failed');
  }

  #save() {
    if (!this.#turns.save()) this.#events.onUnsaved();
  }
}

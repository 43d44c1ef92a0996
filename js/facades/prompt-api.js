// SPDX-License-Identifier: MIT
// The browser's Prompt API over a model: a class LanguageModel whose sessions keep their conversation here. They send
// the whole conversation to the model for each reply; the model has the earlier part cached. Replies of one session run
// one after the other, those of several sessions side by side.

import { abortable, reasonOf } from '../shared/clock.js';
import { badParam } from '../shared/errors.js';
import { anyOf, download, task, tell } from './prompt-events.js';
import { asException, constraintOf, exception, messagesOf, quotaExceeded } from './prompt-input.js';
import { canMake, paramsOf, setupOf } from './prompt-options.js';
import { run } from './run.js';

/** Proves that a session is created by this file. */
const KEY = Symbol('session');

/** The share of a context that is left free for the reply if earlier turns can be left out. */
const ROOM = 0.2;

const CUT = 'The context was full before the reply fitted its responseConstraint.';

/** Adds text about the reply's constraint to the last message of the user. */
function withWords(messages, words) {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  if (!words || at < 0) return messages;
  const { content } = messages[at];
  const said = typeof content === 'string' ? content + words : [...content, { type: 'text', text: words }];
  return messages.with(at, { ...messages[at], content: said });
}

/**
 * Works on messages that need no question, as those of a session that begins. Some chat templates refuse them; then
 * they get an empty one.
 * @template T @param {any[]} messages @param {(messages: any[]) => Promise<T>} work @returns {Promise<T>}
 */
async function unasked(messages, work) {
  try {
    return await work(messages);
  } catch (error) {
    if (error?.detail?.param !== 'messages' || messages.some(({ role }) => role === 'user')) throw error;
    return work([...messages, { role: 'user', content: '' }]);
  }
}

class Session extends EventTarget {
  #model;
  #setup;                         // the options of the session
  #turns = [];                    // messages after the initial ones
  #usage = 0;
  #last = Promise.resolve();      // the latest work, which never fails
  #over = new AbortController();

  oncontextoverflow = null;
  onquotaoverflow = null;

  constructor(key, model, setup, turns = [], usage = 0) {
    super();
    if (key !== KEY) throw new TypeError('Sessions are made by LanguageModel.create().');
    this.#model = model;
    this.#setup = setup;
    this.#turns = turns;
    this.#usage = usage;
    setup.signal?.addEventListener('abort', () => this.#over.abort(setup.signal.reason), {
      once: true,
      signal: this.#over.signal,
    });
  }

  get contextWindow() { return this.#model.info.contextSize; }
  get contextUsage() { return this.#usage; }
  get inputQuota() { return this.contextWindow; }
  get inputUsage() { return this.#usage; }
  get samplingMode() { return this.#setup.mode; }
  get temperature() { return this.#number('temperature'); }
  get topK() { return this.#number('topK'); }

  /** The number as it was given. */
  #number(name) { return this.samplingMode === null ? this.#setup.sampling[name] : undefined; }

  /** Creates a session and counts its initial messages. */
  static async begin(model, setup, signal) {
    const counted = () => unasked(setup.initial, (messages) => model.countTokens(messages, { signal }));
    const count = setup.initial.length ? await abortable(counted(), signal) : 0;
    if (count >= model.info.contextSize) throw quotaExceeded(count, model.info.contextSize);
    await task(signal);
    return new this(KEY, model, setup, [], count);
  }

  async prompt(input, options) {
    let text = '';
    await this.#ask(input, options ?? {}, (piece) => { text += piece; });
    return text;
  }

  /** Throws at once if the signal has aborted, since there is no promise that could reject. */
  promptStreaming(input, options) {
    this.#check(options?.signal);
    const left = new AbortController();
    return new ReadableStream({
      start: (controller) => {
        const given = { ...options, signal: anyOf(left.signal, options?.signal) };
        const done = this.#ask(input, given, (piece) => controller.enqueue(piece));
        // closing fails if the stream was cancelled
        done.then(() => controller.close()).catch((error) => controller.error(error));
      },
      cancel: (reason) => left.abort(reason),
    });
  }

  /** The model reads the appended messages at once, so that the next reply begins sooner. */
  async append(input, options) {
    const { signal } = options ?? {};
    this.#check(signal);
    const { messages } = messagesOf(input, this.#setup);
    await this.#inTurn(signal, async (both) => {
      this.#checkFirst(messages);
      const turns = await this.#fit([...this.#turns, ...messages], '', this.#turns.length, 0);
      const read = (all) => this.#model.chat(all, { maxTokens: 0, signal: both }).result;
      const { usage } = await unasked([...this.#setup.initial, ...turns], read);
      [this.#turns, this.#usage] = [turns, usage.promptTokens];
    });
  }

  async measureContextUsage(input, options) {
    const { signal } = options ?? {};
    this.#check(signal);
    const { words } = constraintOf(options ?? {});
    const { messages } = messagesOf(input, { ...this.#setup, mayGoOn: true });
    const both = anyOf(this.#over.signal, signal);
    const known = messages[0].role === 'system' ? [] : this.#all;
    const before = known.length ? await abortable(this.#count(known, both), both) : 0;
    const whole = await abortable(this.#count(withWords([...known, ...messages], words), both), both);
    return Math.max(0, whole - before);
  }

  measureInputUsage(input, options) { return this.measureContextUsage(input, options); }

  /** @param {{signal?: AbortSignal}} [options] */
  async clone({ signal } = {}) {
    this.#check(signal);
    const both = anyOf(this.#over.signal, signal);
    await abortable(this.#last, both);
    await task(both);
    const Class = /** @type {typeof Session} */ (this.constructor);
    return new Class(KEY, this.#model, { ...this.#setup, signal: undefined }, [...this.#turns], this.#usage);
  }

  destroy() { this.#over.abort(exception('InvalidStateError', 'The session has been destroyed.')); }

  /** @param {AbortSignal} [signal] */
  #check(signal) {
    const over = [this.#over.signal, signal].find((one) => one?.aborted);
    if (over) throw reasonOf(over);
  }

  get #all() { return [...this.#setup.initial, ...this.#turns]; }

  /** A system message must come before everything else. */
  #checkFirst(messages) {
    if (messages[0].role === 'system' && this.#all.length)
      throw new TypeError('A system message must be the first one.');
  }

  async #count(messages, signal) {
    try {
      return await unasked(messages, (all) => this.#model.countTokens(all, { signal }));
    } catch (error) {
      throw asException(error);
    }
  }

  /** Runs work after all earlier work. */
  async #inTurn(signal, work) {
    const both = anyOf(this.#over.signal, signal);
    const before = this.#last;
    const mine = (async () => {
      await abortable(before, both);
      await task(both);
      return work(both);
    })().catch((error) => { throw asException(error); });
    this.#last = Promise.allSettled([before, mine]).then(() => {});
    return mine;
  }

  /**
   * Leaves out the oldest turns, questions with their answers, until there is room.
   * @returns {Promise<any[]>} the messages that stay
   */
  async #fit(turns, words, known, room = ROOM) {
    const quota = this.contextWindow;
    const system = turns.slice(0, turns[0].role === 'system' ? 1 : 0);
    const size = (list) => this.#count(withWords([...this.#setup.initial, ...system, ...list], words));
    let left = known - system.length;
    let kept = turns.slice(system.length);
    const before = kept.length;
    let tokens = await size(kept);
    while (left > 0 && tokens >= quota * (1 - room)) {
      const next = kept.findIndex(({ role }, at) => at > 0 && role === 'user');
      const n = next < 0 || next > left ? left : next;
      left -= n;
      kept = kept.slice(n);
      tokens = await size(kept);
    }
    if (tokens >= quota) throw quotaExceeded(tokens, quota);
    if (kept.length < before) for (const name of ['contextoverflow', 'quotaoverflow']) tell(this, name);
    return [...system, ...kept];
  }

  async #ask(input, options, push) {
    this.#check(options.signal);
    const { limits, words } = constraintOf(options);
    const { messages, goesOn } = messagesOf(input, { ...this.#setup, mayGoOn: true });
    if (this.#setup.tools && goesOn) throw exception('NotSupportedError', 'A session with tools supports no prefix.');
    await this.#inTurn(options.signal, async (signal) => {
      this.#checkFirst(messages);
      const turns = await this.#fit([...this.#turns, ...messages], words, this.#turns.length);
      const asked = withWords([...this.#setup.initial, ...turns], words);
      const given = { ...this.#setup.sampling, ...limits, ...(goesOn && { continue: true }), signal };
      const { made, usage, finishReason } = await this.#reply(asked, given, push);
      signal.throwIfAborted();
      const tokens = usage.promptTokens + usage.completionTokens;
      if (finishReason === 'context' && Object.keys(limits).length)
        throw quotaExceeded(tokens, this.contextWindow, CUT);
      this.#turns = goesOn
        ? turns.with(-1, { ...turns.at(-1), content: turns.at(-1).content + made[0].content })
        : [...turns, ...made];
      this.#usage = tokens;
    });
  }

  async #reply(messages, options, push) {
    const { tools } = this.#setup;
    const reply = tools ? run(this.#model, messages, { ...options, tools }) : this.#model.chat(messages, options);
    for await (const text of reply) push(text);
    const result = /** @type {any} */ (await reply.result);
    return { ...result, made: result.messages ?? [{ role: 'assistant', content: result.text }] };
  }
}

/** Documented in prompt-api.d.ts. */
export function languageModel(model) {
  if (typeof model?.chat !== 'function' || typeof model.countTokens !== 'function')
    throw badParam('model', 'must be a model, which has chat()');

  return class LanguageModel extends Session {
    static async availability(options) {
      return canMake(model, options ?? {}) ? 'available' : 'unavailable';
    }

    static async params() { return paramsOf(model); }

    static async create(options) {
      const { initialPrompts = [], signal = new AbortController().signal, monitor } = options ?? {};
      signal.throwIfAborted();
      const setup = setupOf(model, options ?? {});
      const { messages: initial } = messagesOf(initialPrompts, { ...setup, isInitial: true });
      if (monitor !== undefined) await download(monitor, signal);
      try {
        return await this.begin(model, { ...setup, initial }, signal);
      } catch (error) {
        throw asException(error);
      }
    }
  };
}

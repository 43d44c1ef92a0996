// SPDX-License-Identifier: MIT
// The browser's Prompt API over a model: a class LanguageModel whose sessions keep their conversation here and ask the model for each reply anew,
// which remembers what it has read. Replies of a session follow each other; those of several run side by side.

import { abortable } from '../shared/clock.js';
import { badParam } from '../shared/errors.js';
import { asException, constraintOf, exception, messagesOf, quotaExceeded, toolsOf, typesOf } from './prompt-input.js';
import { run } from './run.js';

/** Whoever makes a session has this. */
const KEY = Symbol('session');

/** The share of a context that is left for the reply where earlier turns can be left out for it. */
const ROOM = 0.2;

const CUT = 'The context was full before the reply fitted its responseConstraint.';

/** The last message with what the model is told of the limits of its reply. */
function withWords(messages, words) {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  if (!words || at < 0) return messages;
  const { content } = messages[at];
  const said = typeof content === 'string' ? content + words : [...content, { type: 'text', text: words }];
  return messages.with(at, { ...messages[at], content: said });
}

/** Calls listeners, and the function that stands in a property. */
function tell(target, name) {
  const event = new Event(name);
  target.dispatchEvent(event);
  target[`on${name}`]?.(event);
}

class Session extends EventTarget {
  #model;
  #setup;                         // what the session was made with
  #turns = [];                    // messages behind the initial ones
  #usage = 0;
  #last = Promise.resolve();      // what is under way, which never fails
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
    setup.signal?.addEventListener('abort', () => this.#over.abort(setup.signal.reason), { once: true, signal: this.#over.signal });
  }

  get contextWindow() { return this.#model.info.contextSize; }
  get contextUsage() { return this.#usage; }
  get inputQuota() { return this.contextWindow; }
  get inputUsage() { return this.#usage; }
  get temperature() { return this.#setup.options.temperature; }
  get topK() { return this.#setup.options.topK; }

  /** Counts what the session begins with. */
  static async begin(model, setup) {
    const count = setup.initial.length ? await model.countTokens(setup.initial) : 0;
    if (count >= model.info.contextSize) throw quotaExceeded(count, model.info.contextSize);
    return new this(KEY, model, setup, [], count);
  }

  async prompt(input, options) {
    let text = '';
    await this.#ask(input, options ?? {}, (piece) => { text += piece; });
    return text;
  }

  promptStreaming(input, options) {
    const left = new AbortController();
    return new ReadableStream({
      start: (controller) => {
        const given = { ...options, signal: AbortSignal.any([left.signal, options?.signal].filter(Boolean)) };
        const done = this.#ask(input, given, (piece) => controller.enqueue(piece));
        done.then(() => controller.close()).catch((error) => controller.error(error));   // closing fails where it was cancelled
      },
      cancel: (reason) => left.abort(reason),
    });
  }

  /** The model reads what was appended at once, so that the next reply begins sooner. */
  async append(input, options) {
    const { signal } = options ?? {};
    this.#check();
    const { messages } = messagesOf(input, this.#setup);
    await this.#inTurn(signal, async (both) => {
      const turns = await this.#fit([...this.#turns, ...messages], '', this.#turns.length, 0);
      const { usage } = await this.#model.chat([...this.#setup.initial, ...turns], { maxTokens: 0, signal: both }).result;
      [this.#turns, this.#usage] = [turns, usage.promptTokens];
    });
  }

  async measureContextUsage(input, options) {
    this.#check();
    const { words } = constraintOf(options ?? {});
    const { messages } = messagesOf(input, { ...this.#setup, mayGoOn: true });
    if (!messages.length) return 0;
    const before = [...this.#setup.initial, ...this.#turns];
    const known = before.length ? await this.#count(before) : 0;
    const whole = await this.#count(withWords([...before, ...messages], words), options?.signal);
    return Math.max(0, whole - known);
  }

  measureInputUsage(input, options) { return this.measureContextUsage(input, options); }

  /** @param {{signal?: AbortSignal}} [options] */
  async clone({ signal } = {}) {
    this.#check();
    signal?.throwIfAborted();
    await abortable(this.#last, AbortSignal.any([this.#over.signal, signal].filter(Boolean)));
    const Class = /** @type {typeof Session} */ (this.constructor);
    return new Class(KEY, this.#model, { ...this.#setup, signal }, [...this.#turns], this.#usage);
  }

  destroy() { this.#over.abort(exception('AbortError', 'The session has been destroyed.')); }

  #check() {
    if (this.#over.signal.aborted) throw exception('InvalidStateError', 'The session has been destroyed.');
  }

  async #count(messages, signal) {
    try {
      return await this.#model.countTokens(messages, { signal });
    } catch (error) {
      throw asException(error);
    }
  }

  /** Work behind what is under way already. */
  async #inTurn(signal, work) {
    const both = AbortSignal.any([this.#over.signal, signal].filter(Boolean));
    both.throwIfAborted();
    const before = this.#last;
    const mine = (async () => {
      await abortable(before, both);
      return work(both);
    })().catch((error) => { throw asException(error); });
    this.#last = Promise.allSettled([before, mine]).then(() => {});
    return mine;
  }

  /** Leaves out the oldest turns, questions with their answers, until there is room. @returns {Promise<any[]>} what stays */
  async #fit(turns, words, known, room = ROOM) {
    const quota = this.contextWindow;
    const size = (list) => this.#count(withWords([...this.#setup.initial, ...list], words));
    let left = known;
    let kept = turns;
    let tokens = await size(kept);
    while (left > 0 && tokens >= quota * (1 - room)) {
      const next = kept.findIndex(({ role }, at) => at > 0 && role === 'user');
      const n = next < 0 || next > left ? left : next;
      left -= n;
      kept = kept.slice(n);
      tokens = await size(kept);
    }
    if (tokens >= quota) throw quotaExceeded(tokens, quota);
    if (kept.length < turns.length) for (const name of ['contextoverflow', 'quotaoverflow']) tell(this, name);
    return kept;
  }

  async #ask(input, options, push) {
    this.#check();
    const { limits, words } = constraintOf(options);
    const { messages, goesOn } = messagesOf(input, { ...this.#setup, mayGoOn: true });
    const isStrange = this.#setup.tools && (goesOn || Object.keys(limits).length);
    if (isStrange) throw exception('NotSupportedError', 'A session with tools takes neither a responseConstraint nor a prefix.');
    await this.#inTurn(options.signal, async (signal) => {
      const turns = await this.#fit([...this.#turns, ...messages], words, this.#turns.length);
      const asked = withWords([...this.#setup.initial, ...turns], words);
      const given = { ...this.#setup.options, ...limits, ...(goesOn && { continue: true }), signal };
      const { made, usage, finishReason } = await this.#reply(asked, given, push);
      signal.throwIfAborted();
      const tokens = usage.promptTokens + usage.completionTokens;
      if (finishReason === 'context' && Object.keys(limits).length) throw quotaExceeded(tokens, this.contextWindow, CUT);
      this.#turns = goesOn ? turns.with(-1, { ...turns.at(-1), content: turns.at(-1).content + made[0].content }) : [...turns, ...made];
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

/** Why a model cannot do what options ask for; empty: it can. */
function missing(model, { inputs, outputs }) {
  if (inputs.has('audio')) return 'no model of quern hears';
  if (inputs.has('image') && !model.info.vision) return 'this model has no eyes: load it with its projector (`vision`)';
  return [...outputs].some((type) => type !== 'text') ? 'models of quern write texts alone' : '';
}

/** As a browser's own, which is there at once. */
function download(monitor) {
  if (typeof monitor !== 'function') throw new TypeError('The monitor must be a function.');
  const target = new EventTarget();
  monitor(target);
  for (const loaded of [0, 1]) {
    const event = Object.assign(new Event('downloadprogress'), { loaded, total: 1, lengthComputable: true });
    target.dispatchEvent(event);
  }
}

/** Documented in prompt-api.d.ts. */
export function languageModel(model) {
  if (typeof model?.chat !== 'function' || typeof model.countTokens !== 'function') throw badParam('model', 'must be a model, which has chat()');

  return class LanguageModel extends Session {
    static async availability(options) {
      return missing(model, typesOf(options ?? {})) ? 'unavailable' : 'available';
    }

    static async create(options) {
      const { initialPrompts = [], tools, signal, monitor, temperature, topK } = options ?? {};
      signal?.throwIfAborted();
      const kinds = typesOf(options ?? {});
      const problem = missing(model, kinds);
      if (problem) throw exception('NotSupportedError', `This session cannot be made: ${problem}.`);
      const sampling = { ...(temperature != null && { temperature }), ...(topK != null && { topK }) };
      const setup = { types: kinds.inputs, tools: toolsOf(tools ?? []), options: sampling, signal };
      const { messages: initial } = messagesOf(initialPrompts, { types: kinds.inputs, isInitial: true });
      if (monitor !== undefined) download(monitor);
      try {
        const making = this.begin(model, { ...setup, initial });
        return await (signal ? abortable(making, signal) : making);
      } catch (error) {
        throw asException(error);
      }
    }
  };
}

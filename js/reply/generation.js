// SPDX-License-Identifier: MIT
// One reply, from its prompt to its result: the engine reads and samples (engine/sequence.js), and its events become
// text here. Events are handled between two steps, so nothing is computed in vain after a stop text.

import { tooLongWith } from './chat.js';
import { ReplyText } from './text.js';

/** The type of control tokens, like `<|im_start|>`. */
const CONTROL = 3;

const DEFAULTS = { repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0 };

export class Generation {
  #sequence = null;       // set by begin()
  #prompt;
  #options;
  #limit;
  #emit;
  #text;
  #done = 0;              // computed tokens of the prompt
  #cached = 0;
  #tokens = [];           // of the reply
  #isRead = false;        // whether the prompt was read before, for the probabilities of its tokens
  #thoughts = 0;          // number of thinking tokens, with their marks
  #hasStops;
  #drafts = {};           // tokens that the model drafted, and those that were right
  #extra;                 // extra results beside the text; undefined: none
  #steps = 0;             // steps that wrote, without the step that read the prompt's last token
  #times = { asked: performance.now(), admitted: undefined, read: undefined };    // admitted: its first step began

  /** For its sequence. @type {{cacheScope?: number, guest?: number, priority?: 'normal' | 'background'}} */
  place;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {import('./chat.js').Prompt} prompt
   * @param {object} options as page/options.js sends them
   * @param {(event: object) => void} emit
   * @param {import('./extra.js').Extra} [extra]
   */
  constructor(engine, prompt, { stops, maxTokens = Infinity, cacheScope, guest, priority, ...sampling }, emit, extra) {
    const total = prompt.ids.length;
    if (total >= engine.contextSize) throw tooLongWith(prompt, engine.contextSize);
    this.place = { cacheScope, guest, priority };
    this.#prompt = prompt;
    this.#limit = maxTokens;
    // the engine samples at least one token
    this.#options = { ...DEFAULTS, ...prompt.defaults, ...sampling, maxTokens: Math.max(1, maxTokens) };
    this.#extra = extra;
    this.#hasStops = stops.length > 0;
    this.#emit = emit;
    this.#text = new ReplyText({ ...prompt, stops, emit: extra ? (event) => emit(extra.told(event)) : emit });
    if (prompt.dropped) emit({ type: 'dropped', messages: prompt.dropped });
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence */
  hold(sequence) {
    const { ids, marks } = this.#prompt;
    sequence.set(ids, 'held', this.media);
    if (marks) sequence.mark(marks);
  }

  /** Prepares a reply that continues a text. @param {import('./guide.js').Slice} slice */
  prepare(slice) { return this.#prompt.begun ? this.#extra?.goOn(this.#prompt.begun, slice) : undefined; }

  get isBehind() { return this.#extra?.isBehind ?? false; }
  pursue(ms) { this.#extra.pursue(ms); }

  /** @param {import('../engine/sequence.js').Sequence} sequence a held one */
  begin(sequence) {
    this.#sequence = sequence;
    const { channels, ends = [] } = this.#prompt;
    sequence.begin({
      ...this.#options,
      silent: [...channels.flatMap(({ open, close }) => [open, close]).filter((id) => id >= 0), ...ends],
      // whatever may end the reply or read logits at a token sees it before the next one is written
      single: Boolean(this.#extra) || this.#hasStops || [...ends].length > 0,
    });
    this.#extra?.begin(sequence, this.#prompt);
  }

  /**
   * Tells the progress of reading the prompt before it is held, for the probabilities of its tokens. The cache has no
   * probabilities.
   */
  read(done, began) {
    this.#isRead = true;
    this.#reads({ done, total: this.#prompt.ids.length, cached: 0 }, began);
  }

  /** Ids of the prompt's images. */
  get media() { return this.#prompt.media; }

  /** All tokens so far, including the prompt's. */
  get ids() { return [...this.#prompt.ids, ...this.#tokens]; }

  /**
   * The tokens that are saved. For a model with states these end where the next prompt still begins alike, and they
   * are saved only if at least `least` of them are known.
   */
  get kept() {
    const { ids, marks } = this.#prompt;
    const least = marks?.at(-1) ?? 0;
    return { ids: marks ? ids.subarray(0, least + 1) : this.ids, least };
  }

  /**
   * @param {import('../engine/engine.js').EngineEvent} event
   * @param {number} began when the event's step began
   * @returns {object | null} the result if the reply ends, or null
   */
  take({ type, ...event }, began) {
    switch (type) {
      case 'look': return this.#looks(event, began);
      case 'read': return this.#reads(event, began);
      case 'token': return this.#writes(event);
      case 'end': return this.#ends(event);
      default: return null;
    }
  }

  #looks({ done, total }, began) {
    if (this.#times.read !== undefined) return null;
    this.#times.admitted ??= began;
    this.#emit({ type: 'prefill', phase: 'vision', done, total, cached: 0, ...this.#prompt.places.at(done, total) });
    return null;
  }

  /** A reply that was let go reads its tokens again; only the time shows it. */
  #reads({ done, total, cached }, began) {
    if (this.#times.read !== undefined) return null;
    this.#times.admitted ??= began;
    this.#done = Math.max(this.#done, done);
    this.#cached = this.#isRead ? 0 : cached;
    if (done === total) this.#times.read = performance.now();
    this.#emit({ type: 'prefill', phase: 'text', done: this.#done, total, cached: this.#cached });
    return null;
  }

  #writes({ token: id, kind, text }) {
    if (this.#tokens.length >= this.#limit) return null;
    if (this.#tokens.push(id) > 1) this.#steps++;
    const before = this.#text.channel;
    const isMark = this.#text.mark(id);
    if ([before, this.#text.channel].some((channel) => channel?.type === 'thinking')) this.#thoughts++;
    const shown = !isMark && kind !== CONTROL;
    this.#extra?.take(id, shown && !this.#text.channel, this.#text.channel);
    if (this.#prompt.ends?.has(id)) return this.#result('stop', true);
    return shown && this.#text.push(text) ? this.#result('stop') : null;
  }

  #ends({ end, error, token, text, done, total }) {
    if (end === 'error') throw error;
    if (total) this.#drafts = { draftedTokens: total, acceptedTokens: done };
    if (end === 'stop' && this.#limit > 0) this.#extra?.last(token);
    if (end === 'stop' && this.#tokens.length > 0) this.#steps++;
    return this.#result(this.#limit > 0 ? end : 'length', end === 'stop', text);
  }

  /** Ends the reply where it is. */
  stop() {
    return this.#result('aborted');
  }

  /**
   * @param {'stop' | 'length' | 'context' | 'aborted'} end
   * @param {boolean} [byItself] whether the reply ended without a stop text
   * @param {string} [rest] the rest of its text, if the engine has ended it
   */
  #result(end, byItself = false, rest = undefined) {
    if (this.#tokens.length > 0) this.#text.push(rest ?? this.#sequence.rest());
    this.#text.end();
    const now = performance.now();
    const { asked, admitted = now, read = now } = this.#times;
    const decodeMs = now - read;
    const { parts } = this.#text;
    return {
      ...parts,
      ...this.#extra?.result(parts.text, byItself),
      ...(this.#prompt.dropped !== undefined && { dropped: this.#prompt.dropped }),
      finishReason: end === 'stop' && parts.toolCalls.length ? 'tool-calls' : end,
      usage: {
        promptTokens: this.#prompt.ids.length,
        imageTokens: this.#prompt.places?.tokens ?? 0,
        cachedTokens: this.#cached,
        completionTokens: this.#tokens.length,
        thinkingTokens: this.#thoughts,
        ...this.#drafts,
      },
      timings: {
        waitMs: admitted - asked,
        prefillMs: read - admitted,
        decodeMs,
        tokensPerSecond: this.#steps ? (1000 * this.#steps) / decodeMs : 0,
      },
    };
  }
}

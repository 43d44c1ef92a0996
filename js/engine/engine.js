// SPDX-License-Identifier: MIT
// quern.h's engine as a JavaScript object; sequence.js and heap.js are its parts, and nothing else calls wasm.
// Addresses and status codes stay in here; whatever the engine refuses becomes a QuernError. Anything else that
// is thrown (a trap) means that the engine must not be entered again, which service.js sees to.

import { engineError } from './engine-error.js';
import { QuernError } from '../shared/errors.js';
import { ENGINE, QUANTIZED } from '../shared/options.js';
import { atOnce } from '../shared/steps.js';
import { CHUNK } from '../shared/chunk.js';
import { Heap } from './heap.js';
import { Sequence } from './sequence.js';
import { Staging } from './staging.js';
import { TextRun, textOf } from './text-run.js';

/** Numbers of struct sched_facts, the last of which count steps by their size. */
const [FACTS, SIZES] = [17, 8];

/** Bytes for second results: the facts at most. */
const OUT = 8 * FACTS;

const KV_TYPES = { f16: 0, f32: 1, q8: 2 };
const PRIORITIES = { normal: 0, background: 1 };
/** Of src/wasm.c's wasm_chat_template(). */
const TEMPLATES = { chat: 0, tools: 2 };


/**
 * Names for the numbers of struct quern_event: its types, how a reply ends, and how many numbers it has.
 * @typedef {object} EngineEvent
 * @property {'read' | 'token' | 'end' | 'letGo' | 'look'} type
 * @property {number} number of the sequence
 * @property {number} token
 * @property {number} kind of a token: of tokenizer.ggml.token_type
 * @property {string} text that a token completes; at an end what is left
 * @property {number} done of `total` tokens, `cached` of which were known; of a look of the tokens of images that are
 *   to be looked at
 * @property {number} total
 * @property {number} cached
 * @property {'stop' | 'length' | 'error' | 'context' | undefined} end and with an error that
 * @property {QuernError | null} error
 */
const EVENTS = [, 'read', 'token', 'end', 'letGo', 'look'];
const ENDS = [, 'stop', 'length', 'error', 'context'];
const EVENT_WORDS = 11;

/** Positions of a page of the cache. There are two more than the positions need. */
const PAGE = 32;

/** What weights become: those of layers, the embeddings. One word is for both. */
function quantized(wanted) {
  const { weights = 'none', embeddings = 'none' } =
    typeof wanted === 'string' ? { weights: wanted, embeddings: wanted } : (wanted ?? {});
  return { quantize: Math.max(0, QUANTIZED.indexOf(weights)), embeddings: Math.max(0, QUANTIZED.indexOf(embeddings)) };
}

export class Engine {
  #wasm;                // exported functions
  #heap;
  #engine;              // addresses
  #out;
  #device;              // where it computes, if that is not the processor
  #answer = null;       // of the device, while it is waited for
  #facts = null;        // parsed info
  #longestToken = 0;

  /** Where bytes come in, until all have. */
  staging;

  /**
   * Another part of the engine's interface, which comes with whoever needs it (image.js, media.js).
   * @type {<Part>(of: new (where: any) => Part) => Part}
   */
  part;

  /**
   * @param {{wasm: object, memory: WebAssembly.Memory}} instance
   * @param {object} options those of ENGINE; what is not given is 0. memoryLimit: bytes that the memory may grow to;
   *   fileSize: of the first of `files`; restSize: of the others; backend: a row of src/compute/backends.c, and its
   *   device: `answer()` resolves with the milliseconds that it took for what was asked last, and rejects when it is
   *   lost
   */
  constructor({ wasm, memory }, options) {
    this.#wasm = wasm;
    this.#heap = new Heap(wasm, memory);
    this.#out = this.#heap.alloc(OUT);
    this.staging = new Staging(wasm, this.#heap, () => this.#engine);    // before the plan, which counts what is taken
    const { kv = 'f16', quantize, files = 1, snapshots, device = null } = options;
    this.#device = device;
    const values = {
      ...options,
      ...quantized(quantize),
      kv: KV_TYPES[kv],
      files,
      snapshots: snapshots === 0 ? -1 : snapshots,
    };
    this.#engine = this.#heap.lend(8 * ENGINE.length, (table) => {
      this.#heap.float64(table, ENGINE.length).set(ENGINE.map((name) => Number(values[name] ?? 0)));
      return wasm._wasm_new(table);
    });
    if (!this.#engine)
      throw new QuernError('mem/load', 'There is not enough memory to start the engine.', { phase: 'load' });
    this.part = (Part) =>
      new Part({
        wasm,
        heap: this.#heap,
        engine: this.#engine,
        out: this.#out,
        check: (status) => this.#check(status),
      });
  }

  // --- loading ---

  /** Bytes that lie in the wasm memory already are taken where they are. */
  feed(chunk) {
    for (let at = 0; at < chunk.length; at += CHUNK) {
      const part = chunk.length > CHUNK ? chunk.subarray(at, at + CHUNK) : chunk;
      this.#check(this.#wasm._wasm_feed(this.#engine, this.staging.enter(part), part.length), 'load');
    }
  }

  /** A millisecond of running the kernels, so that the browser compiles them well. Whether there is more to do. */
  warm() { return this.#wasm._wasm_warm(this.#engine) !== 0; }

  /** The file has ended, and the next one of the model begins. @param {number} size 0 where it is not known */
  nextFile(size) { this.#check(this.#wasm._wasm_next_file(this.#engine, size), 'load'); }

  /** All files of the model have ended, and the bytes of its projector follow. */
  vision(size) { this.#check(this.#wasm._wasm_vision_next(this.#engine, size), 'load'); }

  finish() {
    this.staging.close();
    this.#check(this.#wasm._wasm_finish(this.#engine), 'load');
    this.#facts = JSON.parse(this.#heap.cString(this.#wasm._wasm_info(this.#engine)));
  }

  /** Bytes of the file that its header promises; 0 until it has come. */
  fileSize() { return this.#wasm._wasm_file_size(this.#engine); }

  /** What running the model takes, in bytes, and contexts (struct quern_plan); all 0 until the header has come. */
  plan() {
    this.#wasm._wasm_plan(this.#engine, this.#out);
    const [weights, cache, scratch, total, limit, contextSize, wanted, largest] = this.#heap.float64(this.#out, 8);
    return { weights, cache, scratch, total, limit, contextSize, wanted, largest };
  }

  /** Ends the threads; the memory goes with the object. */
  close() { this.#wasm.PThread.terminateAllThreads(); }

  /** The engine's own description, as src/engine/info.c words it. */
  get facts() { return this.#facts; }
  get contextSize() { return this.#facts.contextSize; }

  /**
   * The chat template; '' where the file has none.
   * @param {boolean} [tools] of conversations with tools, which may have one of their own
   */
  chatTemplate(tools = false) {
    const template = (which) =>
      this.#heap.sized(this.#wasm._wasm_chat_template(this.#engine, which, this.#out), this.#out);
    return (tools && template(TEMPLATES.tools)) || template(TEMPLATES.chat);
  }

  /**
   * Bytes: what the engine holds, the most it ever held, what it was planned to hold, and what the browser has given;
   * and pages of the cache.
   */
  memory() {
    const used = this.#wasm._wasm_memory_used(this.#engine);
    const peak = this.#wasm._wasm_memory_peak(this.#engine);
    return { used, peak, planned: this.plan().total, wasm: this.#heap.buffer.byteLength, cache: this.#cache() };
  }

  #cache() {
    const [,, used, remembered] = this.#scheduled();
    return { pages: this.#facts ? Math.floor(this.#facts.kvPositions / PAGE) + 2 : 0, used, remembered };
  }

  /**
   * Since the load: steps, the rows they computed, how often a reply had to let go of its pages, rows computed again
   * for that, and steps by size.
   */
  work() {
    const facts = this.#scheduled();
    const [,,,, steps, rows, letGo, recomputed] = facts;
    return { steps, rows, letGo, recomputed, sizes: [...facts.subarray(FACTS - SIZES)] };
  }

  /** struct sched_facts, in order. */
  #scheduled() {
    this.#wasm._wasm_facts(this.#engine, this.#out);
    return this.#heap.float64(this.#out, FACTS);
  }

  /** What the steps have cost since the last call, as src/compute/profile.c words it; null where no profile is kept. */
  profile() {
    const address = this.#wasm._wasm_profile(this.#engine);
    return address ? JSON.parse(this.#heap.cString(address)) : null;
  }

  // --- text ---

  /**
   * A text on its way to tokens.
   * @param {string | Uint8Array} text
   * @param {'plain' | 'text' | 'chat'} [mode]
   * @param {number} [sentinel]
   */
  tokenizing(text, mode = 'text', sentinel = 0) {
    const failed = () => new QuernError('mem/load', 'There is not enough memory for this text.');
    const check = (status) => this.#check(status);
    return new TextRun(
      { wasm: this.#wasm, heap: this.#heap, engine: this.#engine, check, failed },
      text,
      mode,
      sentinel,
    );
  }

  /** The same at once. @returns {Int32Array} */
  tokenize(...given) { return this.tokenizing(...given).all(); }

  detokenize(ids) { return atOnce(textOf(this, ids)); }

  /** Bytes of the longest token, from which a text's number of tokens has a lower bound. */
  longestToken() {
    return (this.#longestToken ||= this.tokens().starts.reduce(
      (most, start, i, all) => Math.max(most, all[i + 1] - start || 1),
      1,
    ));
  }

  /**
   * All tokens, until the next call of anything: token i is bytes[starts[i]] to before bytes[starts[i + 1]], and its
   * type types[i].
   */
  tokens() {
    this.#wasm._wasm_tokens(this.#engine, this.#out);
    const [starts, bytes, types] = this.#heap.float64(this.#out, 3);
    const n = this.#facts.tokens;
    const all = this.#heap.int32(starts, n + 1);
    return { starts: all, bytes: this.#heap.bytes(bytes, all[n]), types: this.#heap.bytes(types, n) };
  }

  /** Of tokenizer.ggml.token_type. */
  tokenType(id) { return this.#wasm._wasm_token_type(this.#engine, id); }

  // --- sequences and steps ---

  /**
   * A conversation, empty.
   * @param {{cacheScope?: number, priority?: 'normal' | 'background'}} [place] of other scopes' tokens nothing is known
   */
  sequence({ cacheScope = 0, priority = 'normal' } = {}) {
    const address = this.#wasm._wasm_sequence_new(this.#engine, cacheScope, PRIORITIES[priority]);
    if (!address) throw this.#error(this.#wasm._wasm_error_code(this.#engine));
    return new Sequence(
      {
        wasm: this.#wasm,
        heap: this.#heap,
        out: this.#out,
        facts: this.#facts,
        check: (status) => this.#check(status),
      },
      address,
    );
  }

  /** Computes for all sequences, for about `budgetMs`. @returns {boolean} whether a step was finished */
  step(budgetMs) { return this.#check(this.#wasm._wasm_step(this.#engine, budgetMs)) === 0; }

  /** Whether a device has still to answer the last call: until then nothing else is computed. */
  get awaits() { return this.#device !== null && this.#wasm._wasm_awaits(this.#engine) !== 0; }

  /**
   * Waits until it has; events() are then what follows from the answer. A lost device ends every reply with `gpu/lost`.
   */
  async answer() {
    this.#answer ??= this.#device.answer().catch(() => -1).then((ms) => {
      this.#answer = null;
      this.#wasm._wasm_arrive(this.#engine, ms);
    });
    await this.#answer;
  }

  /**
   * What the last call of step() brought, or the last answer, in order.
   * @returns {EngineEvent[]} numbers are those of sequences
   */
  events() {
    const address = this.#wasm._wasm_events(this.#engine, this.#out);
    const [n] = this.#heap.int32(this.#out, 1);
    const [texts] = this.#heap.float64(this.#out + 8, 1);
    const words = this.#heap.int32(address, EVENT_WORDS * n);
    return Array.from({ length: n }, (_, i) => {
      const [type, number, token, status, done, total, cached, end, kind, at, size] = words.subarray(EVENT_WORDS * i);
      return {
        type: EVENTS[type],
        number,
        token,
        done,
        total,
        cached,
        end: ENDS[end],
        kind,
        text: size ? this.#heap.text(texts + at, size) : '',
        error: status < 0 ? this.#error(status) : null,
      };
    });
  }

  /**
   * The engine finds out, once, what model its saved conversations are of, for about so many milliseconds.
   * @returns {boolean} whether it knows
   */
  identify(budgetMs) { return this.#check(this.#wasm._wasm_saved_print(this.#engine, budgetMs)) === 0; }

  /**
   * Bytes of a record of a saved conversation (MODEL.md), and room for some in the engine's memory, for as long as it
   * lives.
   */
  get recordBytes() { return this.#wasm._wasm_saved_record(this.#engine); }
  room(size) { return this.#heap.bytes(this.#heap.alloc(size), size); }

  /** What a token stands for. */
  tokenBytes(id) {
    const address = this.#wasm._wasm_token(this.#engine, id, this.#out);
    return this.#heap.copy(address, this.#heap.int32(this.#out, 1)[0]);
  }

  /** Passes a result on, or throws what the engine says about a negative status. */
  #check(status, phase = 'call') {
    if (status >= 0) return status;
    throw this.#error(status, phase);
  }

  #error(status, phase = 'call') {
    return engineError({ wasm: this.#wasm, heap: this.#heap, engine: this.#engine, plan: this.plan() }, status, phase);
  }
}

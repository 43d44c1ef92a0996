// SPDX-License-Identifier: MIT
// quern.h's engine as a JavaScript object; sequence.js and heap.js are its parts, and nothing else calls wasm.
// Addresses and status codes stay in here, and errors of the engine become QuernErrors. Anything else that is thrown
// (a trap) means that the engine must not be called again; service.js ensures this.

import { engineError } from './engine-error.js';
import { QuernError } from '../shared/errors.js';
import { ENGINE, QUANTIZED } from '../shared/options.js';
import { atOnce } from '../shared/steps.js';
import { CHUNK } from '../shared/chunk.js';
import { Heap } from './heap.js';
import { Sequence } from './sequence.js';
import { Staging } from './staging.js';
import { TextRun, textOf } from './text-run.js';

/** How many numbers struct sched_facts has; the last SIZES of them count steps by size. */
const [FACTS, SIZES] = [17, 8];

/** Bytes for second results, at most the facts. */
const OUT = 8 * FACTS;

const KV_TYPES = { f16: 0, f32: 1, q8: 2 };
const PRIORITIES = { normal: 0, background: 1 };
/** Arguments of wasm_chat_template() in src/wasm.c. */
const TEMPLATES = { chat: 0, tools: 2 };

/**
 * An event of the engine (struct quern_event).
 * @typedef {object} EngineEvent
 * @property {'read' | 'token' | 'end' | 'letGo' | 'look'} type
 * @property {number} number of the sequence
 * @property {number} token
 * @property {number} kind of a token, as in tokenizer.ggml.token_type
 * @property {string} text the text that a token completes; at an end the rest
 * @property {number} done computed tokens of `total`, `cached` of them from the cache; of a 'look' encoded visual
 *   tokens
 * @property {number} total
 * @property {number} cached
 * @property {'stop' | 'length' | 'error' | 'context' | undefined} end
 * @property {QuernError | null} error
 */
const EVENTS = [, 'read', 'token', 'end', 'letGo', 'look'];
const ENDS = [, 'stop', 'length', 'error', 'context'];
const EVENT_WORDS = 11;

/** Positions of a page of the cache. There are two more pages than the positions need. */
const PAGE = 32;

/** The types that weights of layers and embeddings become. A string is for both. */
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
  #device;              // the device that computes; null: the processor
  #answer = null;       // the promise of the device's answer, while it is awaited
  #facts = null;        // parsed info
  #longestToken = 0;

  /** Memory for incoming bytes, until finish(). */
  staging;

  /**
   * Makes another part of the engine's interface, in a module that only some callers load (image.js, media.js).
   * @type {<Part>(of: new (where: any) => Part) => Part}
   */
  part;

  /**
   * @param {{wasm: object, memory: WebAssembly.Memory}} instance
   * @param {object} options those of ENGINE; a missing option is 0. memoryLimit: bytes that the memory may grow to;
   *   fileSize: of the first of `files`; restSize: of the others; backend: a row of src/compute/backends.c; device: of
   *   that backend; its `answer()` resolves with the milliseconds that the last request took, and rejects if the device
   *   is lost
   */
  constructor({ wasm, memory }, options) {
    this.#wasm = wasm;
    this.#heap = new Heap(wasm, memory);
    this.#out = this.#heap.alloc(OUT);
    this.staging = new Staging(wasm, this.#heap, () => this.#engine);    // before the plan, which counts it
    const { kv = 'f16', quantize, files = 1, snapshots, drafts, device = null } = options;
    this.#device = device;
    const values = {
      ...options,
      ...quantized(quantize),
      kv: KV_TYPES[kv],
      files,
      snapshots: snapshots === 0 ? -1 : snapshots,
      noDrafts: drafts === false,
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

  /** Feeds bytes of the file. Bytes that are in the wasm memory already are not copied. */
  feed(chunk) {
    for (let at = 0; at < chunk.length; at += CHUNK) {
      const part = chunk.length > CHUNK ? chunk.subarray(at, at + CHUNK) : chunk;
      this.#check(this.#wasm._wasm_feed(this.#engine, this.staging.enter(part), part.length), 'load');
    }
  }

  /** Runs the kernels for a millisecond, so that the browser optimizes them. Returns whether more is to be done. */
  warm() { return this.#wasm._wasm_warm(this.#engine) !== 0; }

  /** Ends the file and begins the model's next one. @param {number} size in bytes; 0 if not known */
  nextFile(size) { this.#check(this.#wasm._wasm_next_file(this.#engine, size), 'load'); }

  /** Ends the model's files and begins its projector. @param {number} size in bytes; 0 if not known */
  vision(size) { this.#check(this.#wasm._wasm_vision_next(this.#engine, size), 'load'); }

  finish() {
    this.staging.close();
    this.#check(this.#wasm._wasm_finish(this.#engine), 'load');
    this.#facts = JSON.parse(this.#heap.cString(this.#wasm._wasm_info(this.#engine)));
  }

  /** Waits for errors of the device, and for uploads if many are under way. */
  async settle() { await this.#device?.settle(); }
  async uploaded() { await this.#device?.uploaded(); }

  /** Bytes of the file according to its header; 0 until the header has arrived. */
  fileSize() { return this.#wasm._wasm_file_size(this.#engine); }

  /** The memory plan in bytes, and contexts (struct quern_plan); all 0 until the header has arrived. */
  plan() {
    this.#wasm._wasm_plan(this.#engine, this.#out);
    const [weights, cache, scratch, total, limit, contextSize, wanted, largest] = this.#heap.float64(this.#out, 8);
    return { weights, cache, scratch, total, limit, contextSize, wanted, largest };
  }

  /** Ends the threads; the memory goes with the object. */
  close() {
    this.#wasm.PThread.terminateAllThreads();
    this.#device?.close();
  }

  /** What the graphics device is that computes; null if the processor does. */
  get gpu() { return this.#device?.facts ?? null; }

  /** The description of the model, made by src/engine/info.c. */
  get facts() { return this.#facts; }
  get contextSize() { return this.#facts.contextSize; }

  /**
   * The chat template; '' if the file has none.
   * @param {boolean} [tools] the template for conversations with tools, if the file has one
   */
  chatTemplate(tools = false) {
    const template = (which) =>
      this.#heap.sized(this.#wasm._wasm_chat_template(this.#engine, which, this.#out), this.#out);
    return (tools && template(TEMPLATES.tools)) || template(TEMPLATES.chat);
  }

  /**
   * Bytes: what the engine holds, the most it has held, the plan, and the wasm memory; and pages of the cache.
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
   * Since the load: steps, their rows, how often a reply was let go, rows computed again after that, and steps by size.
   */
  work() {
    const facts = this.#scheduled();
    const [,,,, steps, rows, letGo, recomputed] = facts;
    return { steps, rows, letGo, recomputed, sizes: [...facts.subarray(FACTS - SIZES)] };
  }

  /** The numbers of struct sched_facts, in order. */
  #scheduled() {
    this.#wasm._wasm_facts(this.#engine, this.#out);
    return this.#heap.float64(this.#out, FACTS);
  }

  /** The cost of the steps since the last call, made by src/compute/profile.c; null without the option `profile`. */
  profile() {
    const address = this.#wasm._wasm_profile(this.#engine);
    return address ? JSON.parse(this.#heap.cString(address)) : null;
  }

  // --- text ---

  /**
   * Begins to tokenize a text.
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

  /** Tokenizes a text at once. @returns {Int32Array} */
  tokenize(...given) { return this.tokenizing(...given).all(); }

  detokenize(ids) { return atOnce(textOf(this, ids)); }

  /** Bytes of the longest token: gives a lower bound for the number of a text's tokens. */
  longestToken() {
    return (this.#longestToken ||= this.tokens().starts.reduce(
      (most, start, i, all) => Math.max(most, all[i + 1] - start || 1),
      1,
    ));
  }

  /**
   * All tokens: token i is bytes starts[i] .. starts[i + 1] - 1, its type is types[i]. Valid until the next call of any
   * function.
   */
  tokens() {
    this.#wasm._wasm_tokens(this.#engine, this.#out);
    const [starts, bytes, types] = this.#heap.float64(this.#out, 3);
    const n = this.#facts.tokens;
    const all = this.#heap.int32(starts, n + 1);
    return { starts: all, bytes: this.#heap.bytes(bytes, all[n]), types: this.#heap.bytes(types, n) };
  }

  /** A token's type, as in tokenizer.ggml.token_type. */
  tokenType(id) { return this.#wasm._wasm_token_type(this.#engine, id); }

  // --- sequences and steps ---

  /**
   * Makes an empty sequence.
   * @param {{cacheScope?: number, priority?: 'normal' | 'background'}} [place] sequences of different scopes share no
   *   cache
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

  /** Computes all sequences for about `budgetMs`. @returns {boolean} whether a step was finished */
  step(budgetMs) { return this.#check(this.#wasm._wasm_step(this.#engine, budgetMs)) === 0; }

  /** Whether the last call awaits a device's answer: until then nothing else is computed. */
  get awaits() { return this.#device !== null && this.#wasm._wasm_awaits(this.#engine) !== 0; }

  /**
   * Waits for the device's answer; events() are then its results. A lost device ends every reply with `gpu/lost`.
   * @returns {Promise<boolean>} whether it has answered; false: it is lost
   */
  answer() {
    return (this.#answer ??= this.#device.answer().catch(() => -1).then((ms) => {
      this.#answer = null;
      this.#wasm._wasm_arrive(this.#engine, ms);
      return ms >= 0;
    }));
  }

  /**
   * The events of the last step(), or of the last answer, in order.
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
   * Computes the model's fingerprint for saved conversations, once, for about `budgetMs` per call.
   * @returns {boolean} whether the fingerprint is complete
   */
  identify(budgetMs) { return this.#check(this.#wasm._wasm_saved_print(this.#engine, budgetMs)) === 0; }

  /**
   * Bytes of a record of a saved conversation (MODEL.md); and a buffer in the engine's memory, which is never freed.
   */
  get recordBytes() { return this.#wasm._wasm_saved_record(this.#engine); }
  room(size) { return this.#heap.bytes(this.#heap.alloc(size), size); }

  /** The bytes of a token's text. */
  tokenBytes(id) {
    const address = this.#wasm._wasm_token(this.#engine, id, this.#out);
    return this.#heap.copy(address, this.#heap.int32(this.#out, 1)[0]);
  }

  /** Returns a status, or throws the engine's error if it is negative. */
  #check(status, phase = 'call') {
    if (status >= 0) return status;
    throw this.#error(status, phase);
  }

  #error(status, phase = 'call') {
    return engineError({ wasm: this.#wasm, heap: this.#heap, engine: this.#engine, plan: this.plan() }, status, phase);
  }
}

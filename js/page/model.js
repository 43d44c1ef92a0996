// SPDX-License-Identifier: MIT
// A loaded model as the caller holds it, and how one comes to be. All work happens in the worker; here arguments are
// checked, requests sent and answers shaped. `platform` is what differs between a page and Node (platform-*.js).

import { deadline, reasonOf } from '../shared/clock.js';
import { QuernError, asQuernError, badParam } from '../shared/errors.js';
import { checkMessages, checkName, checkOptions, checkText, checkTokens, sampling } from './options.js';
import { CHAT, COMPLETE, DETOKENIZE, FORGET, KEPT, LOAD, LOGITS, PROFILE, PROMPT, TOKENIZE } from '../shared/protocol.js';
import { Reply } from './reply.js';
import { Rpc } from './rpc.js';
import { serveStore } from '../store/store-port.js';

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * Letters or bytes of a text whose tokens are asked for: as many tokens as a context can have. A list of them takes a tenth of a gigabyte,
 * and seconds.
 */
const MOST_TEXT = 2 ** 24;

/** How long a model that is disposed of has for what it is about to keep. */
const SETTLE_MS = 5000;

/** The seed of a reply whose caller named none: any whole number up to 2^53-1. */
const randomSeed = () => Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);

class Model {
  #rpc;
  #info;
  #hasStore;
  #keeps = false;     // whether anything may be on its way to the store

  constructor(rpc, info, hasStore) {
    this.#rpc = rpc;
    this.#hasStore = hasStore;
    this.#info = Object.freeze(info);
  }

  get info() {
    return this.#info;
  }

  chat(messages, options) {
    return this.#reply(CHAT, 'chat', options, (checked) => {
      if (checked.keep && !this.#hasStore) throw badParam('options.keep', 'needs a store, but the model was loaded with cache: false');
      this.#keeps ||= Boolean(checked.keep);
      return { messages: checkMessages(messages, checked.continue) };
    });
  }

  async kept(options) {
    const { signal } = checkOptions('call', options);
    return this.#call(KEPT, {}, signal);
  }

  async forget(name, options) {
    const { signal } = checkOptions('call', options);
    return this.#call(FORGET, { name: checkName(name) }, signal);
  }

  complete(prompt, options) {
    return this.#reply(COMPLETE, 'complete', options, () => ({
      prompt: typeof prompt === 'string' ? prompt : checkTokens(prompt, this.#info.vocabSize, 'prompt'),
    }));
  }

  async tokenize(input, options) {
    const { signal, thinking } = checkOptions('tokens', options);
    return Array.from(await this.#tokens(Array.isArray(input) ? checkMessages(input) : checkText(input), signal, thinking));
  }

  async detokenize(tokens, options) {
    const { signal } = checkOptions('call', options);
    return this.#call(DETOKENIZE, { ids: checkTokens(tokens, this.#info.vocabSize) }, signal);
  }

  async countTokens(input, options) {
    const { signal, thinking } = checkOptions('tokens', options);
    return (await this.#tokens(typeof input === 'string' ? input : checkMessages(input), signal, thinking)).length;
  }

  async logits(tokens, options) {
    const { signal } = checkOptions('call', options);
    return this.#call(LOGITS, { ids: checkTokens(tokens, this.#info.vocabSize) }, signal);
  }

  async profile(options) {
    const { signal } = checkOptions('call', options);
    return this.#call(PROFILE, {}, signal);
  }

  async dispose() {
    if (this.#keeps) await this.#settle();
    await this.#rpc.close(new QuernError('engine/disposed', 'The model has been disposed of.'));
  }

  [asyncDispose]() {
    return this.dispose();
  }

  /** What is being kept is written, as far as that takes no longer than some seconds. */
  async #settle() {
    let cancel;
    const late = new Promise((done) => { cancel = deadline(SETTLE_MS, done); });
    await Promise.race([this.kept().catch(() => {}), late]);
    cancel();
  }

  /** Answers carry the engine's own figures along, so that `info` can show them without a question of its own. */
  #answer({ value, memory, work }) {
    this.#info = Object.freeze({ ...this.#info, memory: Object.freeze(memory), work: Object.freeze(work) });
    return value;
  }

  async #call(type, payload, signal) {
    return this.#answer(await this.#rpc.call(type, payload, { signal }).promise);
  }

  /** Of a text, or of a conversation with everything its template adds. */
  async #tokens(text, signal, thinking) {
    if (Array.isArray(text)) return this.#call(PROMPT, { messages: text, thinking }, signal);
    if (text.length > MOST_TEXT) {
      throw new QuernError('mem/load',
        `A text of ${text.length} letters or bytes is too long for one list of tokens; give it in parts of at most ${MOST_TEXT}.`);
    }
    return this.#call(TOKENIZE, { text }, signal);
  }

  /** Bad arguments fail the reply, like everything else that can go wrong with it. */
  #reply(type, kind, options, prepare) {
    return new Reply((push) => {
      let request;
      try {
        const checked = checkOptions(kind, options);
        request = { checked, payload: { ...prepare(checked), options: { seed: randomSeed(), ...sampling(checked, this.#info.tokens) } } };
      } catch (error) {
        return { promise: Promise.reject(error), stop() {} };
      }
      const { signal, onPrefill } = request.checked;
      const onEvent = ({ type: kindOfEvent, ...event }) => (kindOfEvent === 'prefill' ? onPrefill?.(event) : push({ type: kindOfEvent, ...event }));
      const { promise, stop } = this.#rpc.call(type, request.payload, { signal, onEvent });
      return { promise: promise.then((answer) => this.#answer(answer)), stop };
    });
  }
}

function startRpc(platform, workerUrl) {
  try {
    return new Rpc(platform.startWorker(workerUrl), platform.watch);
  } catch (error) {
    if (error instanceof QuernError) throw error;
    throw new QuernError('env/worker', `The engine's worker cannot be started (${error.message}).`, { phase: 'start', cause: error });
  }
}

/** Asked once, when the first model is about to be kept: the browser may then clear it away only when its user says so. */
let asked = false;
function askToPersist(platform, { phase, waiting }) {
  if (asked || waiting || phase !== 'download') return;
  asked = true;
  platform.persist();
}

/** What goes to the worker of the options, and the caller's own store, if any, as it is served. */
function wireOptions(platform, { cache = true, sha256 = [], ...options }) {
  const served = typeof cache === 'object' ? serveStore(cache) : null;
  const wire = { ...options, cache: served?.port ?? cache, sha256: [sha256].flat().map((hash) => hash.toLowerCase()) };
  if (options.wasmUrl) wire.wasmUrl = platform.resolveUrl(options.wasmUrl);
  return { wire, served };
}

/**
 * Has a worker of its own work on a source; whatever goes wrong, it is gone again before this rejects.
 * @returns {Promise<{rpc: Rpc, answer: any}>}
 */
export async function startWith(platform, type, source, { signal, onProgress, workerUrl, ...options }) {
  const { source: opened, transfer = [] } = platform.resolveSource(source);
  const { wire, served } = wireOptions(platform, options);
  signal?.throwIfAborted();
  const rpc = startRpc(platform, workerUrl && platform.resolveUrl(workerUrl));
  if (served) rpc.ended.then(served.end);
  const onAbort = () => rpc.close(reasonOf(signal));
  signal?.addEventListener('abort', onAbort, { once: true });
  const onEvent = ({ type: _, ...progress }) => {
    if (wire.cache === true) askToPersist(platform, progress);
    return onProgress?.(progress);
  };
  try {
    await rpc.ready();
    const how = { onEvent, transfer: served ? [...transfer, served.port] : transfer };
    return { rpc, answer: await rpc.call(type, { source: opened, options: wire }, how).promise };
  } catch (error) {
    await rpc.close(error instanceof QuernError ? error : asQuernError(error, 'load'));
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Loads a model into a worker of its own. */
export async function openModel(platform, source, options) {
  const checked = checkOptions('load', options);
  const { rpc, answer } = await startWith(platform, LOAD, source, checked);
  return new Model(rpc, answer, checked.cache !== false);
}

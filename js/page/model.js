// SPDX-License-Identifier: MIT
// A loaded model as the caller holds it. All work happens in the worker; here arguments are checked, images read,
// requests sent and answers shaped. `platform` is what differs between a page and Node (platform-*.js).

import { abortable, deadline } from '../shared/clock.js';
import { called, callable } from '../shared/called.js';
import { QuernError, badParam } from '../shared/errors.js';
import { checkMessages, countMedia, textPart } from './messages.js';
import { checkName, checkOptions, checkText, checkTokens, sampling } from './options.js';
import {
  CHAT, COMPLETE, DETOKENIZE, FORGET, KEPT, LOAD, LOGITS, LOOK, PROFILE, PROMPT, TOKENIZE, VECTORS,
} from '../shared/protocol.js';
import { Reply } from './reply.js';
import { startWith } from './start.js';
import { judged } from './standard.js';

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * Letters or bytes of a text whose tokens are asked for: as many tokens as a context can have. A list of them takes a
 * tenth of a gigabyte, and seconds.
 */
const MOST_TEXT = 2 ** 24;

/** How long a model that is disposed of has for what it is about to keep. */
const SETTLE_MS = 5000;

/** The seed of a reply whose caller named none: any whole number up to 2^53-1. */
const randomSeed = () => Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);

class Model {
  #rpc;
  #platform;
  #info;
  #hasStore;
  #keeps = false;     // whether anything may be on its way to the store
  #images;          // how they are taken (images.js); null where the model sees nothing
  #most;              // frames of a video

  constructor(rpc, info, platform, images, { store, visionOptions = {} }) {
    this.#rpc = rpc;
    this.#platform = platform;
    this.#hasStore = store !== false;
    this.#info = Object.freeze(info);
    this.#images = images;
    this.#most = visionOptions.maxFrames ?? undefined;
  }

  get info() {
    return this.#info;
  }

  chat(messages, options) {
    return this.#reply(CHAT, 'chat', options, (checked, signal) => {
      if (checked.keep && !this.#hasStore)
        throw badParam('options.keep', 'needs a store, but the model was loaded with store: false');
      this.#keeps ||= Boolean(checked.keep);
      return this.#taken(this.#checked(messages, checked.continue), signal);
    });
  }

  async kept(options) {
    const { signal } = checkOptions('call', options);
    return this.#call(KEPT, {}, { signal });
  }

  async forget(name, options) {
    const { signal } = checkOptions('call', options);
    return this.#call(FORGET, { name: checkName(name) }, { signal });
  }

  complete(prompt, options) {
    return this.#reply(COMPLETE, 'complete', options, () => ({
      prompt: typeof prompt === 'string' ? prompt : checkTokens(prompt, this.#info.vocabSize, 'prompt'),
    }));
  }

  async tokenize(input, options) {
    const checked = checkOptions('tokens', options);
    return Array.from(
      await this.#tokens(Array.isArray(input) ? this.#checked(input, checked.continue) : checkText(input), checked),
    );
  }

  async detokenize(tokens, options) {
    const { signal, bytes, ...choices } = checkOptions('detokenize', options);
    return this.#call(
      DETOKENIZE,
      { ids: checkTokens(tokens, this.#info.vocabSize), bytes, options: choices },
      { signal },
    );
  }

  async countTokens(input, options) {
    const checked = checkOptions('tokens', options);
    return (await this.#tokens(typeof input === 'string' ? input : this.#checked(input, checked.continue), checked))
      .length;
  }

  async logits(input, options) {
    const { signal, ...choices } = checkOptions('tokens', options);
    const isConversation = Array.isArray(input) && typeof input[0] === 'object';
    if (isConversation) return this.#converse(LOGITS, this.#checked(input, choices.continue), { signal, choices });
    return this.#call(LOGITS, { ids: checkTokens(input, this.#info.vocabSize), options: choices }, { signal });
  }

  async look(image, options) {
    const { signal, cacheScope, guest, ...how } = checkOptions('look', options);
    const { media } = this.#taken(
      this.#checked([{ role: 'user', content: [{ type: 'image', image, ...how }] }]),
      signal,
    );
    return this.#call(
      LOOK,
      { media: await media, options: { cacheScope, guest } },
      { signal, transfer: this.#images.transferOf(await media) },
    );
  }

  embed(...given) { return this.#vectors('embed', given); }
  rank(...given) { return this.#vectors('rank', given); }

  async profile(options) {
    const { signal } = checkOptions('call', options);
    return this.#call(PROFILE, {}, { signal });
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

  async #call(type, payload, how) {
    return this.#answer(await this.#rpc.call(type, payload, how).promise);
  }

  #checked(messages, goesOn) {
    return checkMessages(messages, goesOn, this.#images?.checkPart ?? textPart);
  }

  /** A conversation with its images read, or on their way; `media` is there where it has none. */
  #taken(messages, signal) {
    if (countMedia(messages) === 0) return { messages, media: [] };
    return this.#images.takeMedia(messages, this.#images.reader, {
      most: this.#most,
      signal,
      videos: this.#platform.videos,
    });
  }

  async #converse(type, messages, { signal, choices }) {
    const taken = this.#taken(messages, signal);
    const media = await taken.media;
    return this.#call(
      type,
      { messages: taken.messages, media, options: choices },
      { signal, transfer: this.#images?.transferOf(media) },
    );
  }

  /**
   * What they take and give is a part of the package of its own.
   * @param {'embed' | 'rank'} kind
   * @param {any[]} given
   */
  async #vectors(kind, given) {
    const { [kind]: work } = await this.#platform.vectors();
    return work(this.#info, (payload, how) => this.#call(VECTORS, payload, how), ...given);
  }

  /** Of a text, or of a conversation with everything its template adds. */
  async #tokens(text, { signal, ...choices }) {
    if (Array.isArray(text)) return this.#converse(PROMPT, text, { signal, choices });
    if (text.length > MOST_TEXT) {
      throw new QuernError(
        'mem/load',
        `A text of ${text.length} letters or bytes is too long for one list of tokens; give it in parts of at most ${MOST_TEXT}.`,
        { hint: '' },
      );
    }
    return this.#call(TOKENIZE, { text, options: choices }, { signal });
  }

  /** Bad arguments fail the reply, like everything else that can go wrong with it. */
  #reply(type, kind, options, prepare) {
    return new Reply((push) => {
      const leave = new AbortController();
      let request;
      try {
        const checked = checkOptions(kind, options);
        const choices = { seed: randomSeed(), ...sampling(checked, this.#info.tokens) };
        request = {
          checked,
          schema: options?.schema,
          payload: { ...prepare(checked, leave.signal), options: choices },
        };
      } catch (error) {
        return { promise: Promise.reject(error), stop() {} };
      }
      const { signal, onPrefill } = request.checked;
      const onEvent = ({ type: kindOfEvent, ...event }) =>
        kindOfEvent === 'prefill' ? onPrefill?.(event) : push({ type: kindOfEvent, ...event });
      const call = (payload, transfer) => this.#rpc.call(type, payload, { signal, onEvent, transfer });
      const { promise, stop } = afterMedia(request.payload, call, {
        signal,
        leave,
        transferOf: this.#images?.transferOf,
      });
      return { promise: promise.then((answer) => valued(this.#answer(answer), request.schema)), stop };
    });
  }
}

callable(Model.prototype, [
  'kept',
  'forget',
  'tokenize',
  'detokenize',
  'countTokens',
  'logits',
  'look',
  'embed',
  'rank',
  'profile',
]);

/**
 * A text that is JSON is read here, with what there was of it before, as a value may be nested too deeply to be sent;
 * and judged where the schema is a library's.
 */
const valued = async ({ begun, ...result }, schema) => (
  begun === undefined ? result : { ...result, ...await judged(schema, JSON.parse(begun + result.text)) });

/**
 * Calls once the images are there: at once, where there are none. What is stopped before is told so to the worker,
 * which gives it a result.
 * @param {{media?: any[] | Promise<any[]>}} payload
 * @param {(payload: object, transfer?: any[]) => {promise: Promise<any>, stop: () => void}} call
 */
function afterMedia(payload, call, { signal, leave, transferOf }) {
  if (!(payload.media instanceof Promise)) return call(payload);
  let begun = null;
  const stopped = new Promise((resolve) => {
    leave.signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  const work = async () => {
    const media = await Promise.race([payload.media, stopped]);
    begun = media
      ? call({ ...payload, media }, transferOf(media))
      : call({ ...payload, messages: [], media: [], stopped: true });
    return begun.promise;
  };
  const promise = signal ? abortable(work(), signal) : work();
  signal?.addEventListener('abort', () => leave.abort(), { once: true });
  return { promise, stop: () => (begun ? begun.stop() : leave.abort()) };
}

/** Loads a model into a worker of its own. */
export const openModel = called(async (platform, source, options) => {
  const checked = checkOptions('load', options);
  const { rpc, answer } = await startWith(platform, LOAD, source, checked);
  if (checked.vision === true && !answer.vision) {
    const error = badParam('options.vision', "is true, but these files have no vision part; name the projector's file");
    await rpc.close(error);
    throw error;
  }
  return new Model(rpc, answer, platform, answer.vision ? await platform.images() : null, checked);
});

// SPDX-License-Identifier: MIT
// A loaded model. All work happens in the worker; this file checks arguments, reads images, sends requests and shapes
// the answers. `platform` has the differences between a page and Node (platform-*.js).

import { abortable, deadline } from '../shared/clock.js';
import { called, callable } from '../shared/called.js';
import { QuernError, badParam } from '../shared/errors.js';
import { checkMessages, countMedia, textPart } from './messages.js';
import { checkName, checkOptions, checkText, checkTokens, sampling } from './options.js';
import {
  CHAT, COMPLETE, DETOKENIZE, FORGET, SAVED, LOAD, LOGITS, LOOK, PROFILE, PROMPT, TOKENIZE, VECTORS,
} from '../shared/protocol.js';
import { Reply } from './reply.js';
import { startWith } from './start.js';
import { judged } from './standard.js';

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * Most letters or bytes of a text for tokenize(): as many tokens as a context can have. A list of that many takes a
 * tenth of a gigabyte, and seconds.
 */
const MOST_TEXT = 2 ** 24;

/** How long dispose() waits for pending saves. */
const SETTLE_MS = 5000;

/** Default seed of a reply: any whole number up to 2^53-1. */
const randomSeed = () => Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);

class Model {
  #rpc;
  #platform;
  #info;
  #hasStore;
  #saves = false;     // whether any save may be pending
  #images;          // reads images (images.js); null for a model without vision
  #most;              // most frames of a video

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
      if (checked.save && !this.#hasStore)
        throw badParam('options.save', 'needs a store, but the model was loaded with store: false');
      this.#saves ||= Boolean(checked.save);
      return this.#taken(this.#checked(messages, checked.continue), signal);
    });
  }

  async saved(options) {
    const { signal } = checkOptions('call', options);
    return this.#call(SAVED, {}, { signal });
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
    if (this.#saves) await this.#settle();
    await this.#rpc.close(new QuernError('engine/disposed', 'The model has been disposed of.'));
  }

  [asyncDispose]() {
    return this.dispose();
  }

  /** Waits for pending saves, but only for some seconds. */
  async #settle() {
    let cancel;
    const late = new Promise((done) => { cancel = deadline(SETTLE_MS, done); });
    await Promise.race([this.saved().catch(() => {}), late]);
    cancel();
  }

  /** Every answer includes the engine's current figures, so that `info` can show them without a request of its own. */
  #answer({ value, ...figures }) {
    Object.values(figures).forEach(Object.freeze);
    this.#info = Object.freeze({ ...this.#info, ...figures });
    return value;
  }

  async #call(type, payload, how) {
    return this.#answer(await this.#rpc.call(type, payload, how).promise);
  }

  #checked(messages, goesOn) {
    return checkMessages(messages, goesOn, this.#images?.checkPart ?? textPart);
  }

  /**
   * Takes the images out of a conversation; `media` is a promise while they are being read, and a list if there are
   * none.
   */
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

  /** These functions are in a separate file of the package. @param {'embed' | 'rank'} kind @param {any[]} given */
  async #vectors(kind, given) {
    const { [kind]: work } = await this.#platform.vectors();
    return work(this.#info, (payload, how) => this.#call(VECTORS, payload, how), ...given);
  }

  /** Tokens of a text, or of a conversation with everything its template adds. */
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

  /** Bad arguments fail the reply, like any other error. */
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
  'saved',
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
 * Parses a JSON text together with the text that it continues; this happens here because a value may be nested too
 * deeply to be sent. A library's schema then judges the value.
 */
const valued = async ({ begun, ...result }, schema) => (
  begun === undefined ? result : { ...result, ...await judged(schema, JSON.parse(begun + result.text)) });

/**
 * Sends the call when the images are read, or at once if there are none. If it was stopped before that, the worker is
 * told so and gives it a result.
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
  const start = checked.draft ?? checked.backend ? (await platform.late()).startLate.bind(null, startWith) : startWith;
  const { rpc, answer } = await start(platform, LOAD, source, checked);
  if (checked.vision === true && !answer.vision) {
    const error = badParam('options.vision', "is true, but these files have no vision part; name the projector's file");
    await rpc.close(error);
    throw error;
  }
  return new Model(rpc, answer, platform, answer.vision ? await platform.images() : null, checked);
});

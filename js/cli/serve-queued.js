// SPDX-License-Identifier: MIT
// Wraps work that waits for its place, so that it looks like the work it becomes. A place is held until the work has
// ended, even if nobody reads its result any more.

import { chatRequest } from '../facades/openai.js';
import { messagesRequest } from '../facades/messages-request.js';
import { completionRequest } from '../facades/openai-request.js';
import { checkOptions } from '../page/options.js';
import { Reply } from '../page/reply.js';
import { isRecord } from '../shared/kinds.js';
import { refusal } from './serve-refusal.js';

/** Checks by path that are possible before the request's turn. */
const CHECKS = {
  '/chat/completions': (body) => checkOptions('chat', chatRequest(body).options),
  '/completions': (body, { info }) => checkOptions('complete', completionRequest(body, info).options),
  '/messages': (body) => checkOptions('chat', messagesRequest(body).options),
};

/** Whether a request wants a stream. @param {import('../facades/openai-api.js').Making} making */
const streams = ({ wire, unlessNo }, { stream }) =>
  wire !== undefined && (unlessNo ? stream !== false : stream === true);

const countOf = (value) => (Array.isArray(value) && typeof value[0] !== 'number' ? value.length : 1);
const numberOf = (value) => (Number.isInteger(value) ? value : 1);

/**
 * The number of replies that a request makes at once, and whether they run behind others, as lists of texts do. Errors
 * in the request are reported elsewhere.
 */
function loadOf(path, { wire }, body) {
  const { prompt, input, documents, n, best_of: most, priority } = isRecord(body) ? body : {};
  const isBehind = !wire || priority === 'background' || priority > 0;
  const texts = countOf(prompt) * countOf(documents) * (path === '/responses' ? 1 : countOf(input));
  return { kind: isBehind ? 'behind' : 'reply', weight: texts * Math.max(numberOf(n), numberOf(most)) };
}

/** Leaves the place when the work has ended. */
function holding(place, work) {
  const leave = () => place.leave();
  work.accepted?.then(() => place.begin(), () => {});
  Promise.resolve(work.ended ?? work.whole()).then(leave, leave);
  return work;
}

/** The result of a reply that was stopped before it began. */
const NOTHING = {
  text: '', thinking: '', finishReason: 'aborted', usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
  timings: { waitMs: 0, prefillMs: 0, decodeMs: 0, tokensPerSecond: 0 },
};

/** A reply that begins when its turn comes. @param {import('./serve-queue.js').Place} place @param {() => any} begin */
const replyAt = (place, begin) => new Reply((push) => {
  let reply = null;
  let stopped = false;
  const made = async () => {
    await place.turn;
    reply = begin();
    reply.result.then(() => place.leave(), () => place.leave());
    for await (const event of reply.events) push(event);
    return reply.result;
  };
  const promise = made().catch((error) => {
    if (stopped && !reply) return NOTHING;
    place.leave();
    throw error;
  });
  return { promise, stop() {
    stopped = true;
    if (reply) reply.stop();
    else place.leave();
  } };
});

/**
 * Begins the work of a request, now or when its turn comes. For a response in the background, the client is told at
 * once that it waits.
 * @param {{queue: import('./serve-queue.js').Queue, model: any, path: string, making:
 *   import('../facades/openai-api.js').Making, body: any, asker: import('./serve-queue.js').Asker}} asked
 * @param {(body: any, model: any) => any} begin
 */
export function inTurn({ queue, model, path, making, body, asker }, begin) {
  const { key, socket, turn, body: sent } = asker;
  const enter = (load) => queue.enter({ key, socket, bytes: sent.size, ...load });
  if (path === '/responses' && body?.background === true) {
    const chat = (...given) => replyAt(enter({ kind: 'behind' }), () => model.chat(...given));
    return begin(body, { ...model, chat });
  }
  const place = enter(loadOf(path, making, body));
  try {
    if (!place.turn) return holding(place, begin(body, model));
    CHECKS[path]?.(body, model);
    sent.forget();
    return new Queued(place, async () => {
      const again = await turn(() => sent.parse());
      return turn(() => begin(again, model));
    }, streams(making, body));
  } catch (error) {
    place.leave();
    throw error;
  }
}

/** Runs work without a reply, when it has a place. */
export async function asked({ queue, asker: { key, socket, whenGone } }, work) {
  const place = queue.enter({ key, socket, kind: 'ask' });
  try {
    whenGone(() => { if (place.isWaiting) place.leave(); });
    await place.turn;
    return await work();
  } finally {
    place.leave();
  }
}

class Queued {
  #place;
  #work;
  #begun = null;
  #stopped = false;

  /** @type {Promise<void>} */
  accepted;

  /** @param {import('./serve-queue.js').Place} place @param {() => Promise<any>} begin @param {boolean} stream */
  constructor(place, begin, stream) {
    this.#place = place;
    this.stream = stream;
    this.#work = place.turn.then(() => this.#begin(begin));
    this.accepted = this.#work.then((work) => work.accepted);
    this.accepted.catch(() => {});
  }

  async #begin(begin) {
    try {
      if (this.#stopped) throw refusal(499, 'The client has gone.');
      const work = await begin();
      this.#begun = holding(this.#place, work);
      if (this.#stopped) work.stop();
      return work;
    } catch (error) {
      this.#place.leave();
      throw error;
    }
  }

  async whole() { return (await this.#work).whole(); }
  async* chunks() { yield* (await this.#work).chunks(); }

  /** A failure as pieces, if the API has a form for it. */
  failed(error) { return this.#begun?.failed?.(error); }

  stop() {
    this.#stopped = true;
    if (this.#begun) this.#begun.stop();
    else this.#place.leave();
  }
}

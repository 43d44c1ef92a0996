// SPDX-License-Identifier: MIT
// Work that waits for its place looks like the work that it becomes. A place is held until that has ended, though nobody may read it any more.

import { chatRequest } from '../facades/openai.js';
import { messagesRequest } from '../facades/messages-request.js';
import { completionRequest } from '../facades/openai-request.js';
import { checkOptions } from '../page/options.js';
import { isRecord } from '../shared/raw-json.js';
import { refusal } from './serve-refusal.js';

/** By path, what can be told to be wrong before anything is made. */
const CHECKS = {
  '/chat/completions': (body) => checkOptions('chat', chatRequest(body).options),
  '/completions': (body, { info }) => checkOptions('complete', completionRequest(body, info).options),
  '/messages': (body) => checkOptions('chat', messagesRequest(body).options),
};

/** Whether a request wants pieces. @param {import('../facades/openai-api.js').Making} making */
const streams = ({ wire, unlessNo }, { stream }) => wire !== undefined && (unlessNo ? stream !== false : stream === true);

const countOf = (value) => (Array.isArray(value) && typeof value[0] !== 'number' ? value.length : 1);
const numberOf = (value) => (Number.isInteger(value) ? value : 1);

/** What a request asks for at once, and whether behind all others, as lists of texts are. What is wrong with it others say. */
function loadOf(path, { wire }, body) {
  const { prompt, input, documents, n, best_of: most, priority } = isRecord(body) ? body : {};
  const isBehind = !wire || priority === 'background' || priority > 0;
  const texts = countOf(prompt) * countOf(documents) * (path === '/responses' ? 1 : countOf(input));
  return { isBehind, weight: texts * Math.max(numberOf(n), numberOf(most)) };
}

/** The place is left when the work has ended. */
function holding(place, work) {
  const leave = () => place.leave();
  Promise.resolve(work.ended ?? work.whole()).then(leave, leave);
  return work;
}

/**
 * Work for a request, now or in its turn. A response that is made in the background has few of its kind beside it, and its client is told at once.
 * @param {{queue: import('./serve-queue.js').Queue, model: any, path: string, making: import('../facades/openai-api.js').Making,
 *   body: any, key: number, sent: {socket: object, body: import('./serve-body.js').Body}}} asked
 * @param {(body: any) => any} begin
 */
export function inTurn({ queue, model, path, making, body, key, sent }, begin) {
  if (path === '/responses' && body?.background === true) return begin(body);
  const place = queue.enter({ key, socket: sent.socket, ...loadOf(path, making, body) });
  try {
    if (!place.turn) return holding(place, begin(body));
    CHECKS[path]?.(body, model);
    sent.body.forget();
    return new Queued(place, () => begin(sent.body.parse()), streams(making, body));
  } catch (error) {
    place.leave();
    throw error;
  }
}

class Queued {
  #place;
  #work;
  #begun = null;
  #stopped = false;

  /** @type {Promise<void>} */
  accepted;

  /** @param {import('./serve-queue.js').Place} place @param {() => any} begin @param {boolean} stream */
  constructor(place, begin, stream) {
    this.#place = place;
    this.stream = stream;
    this.#work = place.turn.then(() => this.#begin(begin));
    this.accepted = this.#work.then((work) => work.accepted);
    this.accepted.catch(() => {});
  }

  #begin(begin) {
    try {
      if (this.#stopped) throw refusal(499, 'Whoever asked has gone.');
      this.#begun = holding(this.#place, begin());
      return this.#begun;
    } catch (error) {
      this.#place.leave();
      throw error;
    }
  }

  async whole() { return (await this.#work).whole(); }
  async* chunks() { yield* (await this.#work).chunks(); }

  /** A failure in pieces, of an API that has a word for it. */
  failed(error) { return this.#begun?.failed?.(error); }

  stop() {
    this.#stopped = true;
    if (this.#begun) this.#begun.stop();
    else this.#place.leave();
  }
}

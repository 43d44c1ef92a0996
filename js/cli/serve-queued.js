// SPDX-License-Identifier: MIT
// Work that waits for its place looks like the work that it becomes. A place is held until that has ended, though nobody may read it any more.

import { chatRequest } from '../facades/openai.js';
import { messagesRequest } from '../facades/messages-request.js';
import { completionRequest } from '../facades/openai-request.js';
import { WIRES } from '../facades/sse.js';
import { checkOptions } from '../page/options.js';
import { isRecord } from '../shared/raw-json.js';
import { refusal } from './serve-refusal.js';

/** Paths whose texts are worked at behind all replies. */
const LISTS = ['/embeddings', '/rerank', '/reranking', '/api/embed', '/api/embeddings'];

/** By path, what can be told to be wrong before anything is made. */
const CHECKS = {
  '/chat/completions': (body) => checkOptions('chat', chatRequest(body).options),
  '/completions': (body, { info }) => checkOptions('complete', completionRequest(body, info).options),
  '/messages': (body) => checkOptions('chat', messagesRequest(body).options),
};

/** How pieces are sent, of paths whose work does not send them as OpenAI's. */
const SENT = {
  '/responses': WIRES.named, '/messages': WIRES.named, '/completion': WIRES.data, '/api/chat': WIRES.lines, '/api/generate': WIRES.lines,
};

/** Whether a request wants pieces: Ollama's do unless they say no. */
const streams = (path, { stream }) => (path.startsWith('/api/') ? SENT[path] !== undefined && stream !== false : stream === true);

const countOf = (value) => (Array.isArray(value) && typeof value[0] !== 'number' ? value.length : 1);
const numberOf = (value) => (Number.isInteger(value) ? value : 1);

/** What a request asks for at once, and whether behind all others. What is wrong with it others say. */
function loadOf(path, body) {
  const { prompt, input, documents, n, best_of: most, priority } = isRecord(body) ? body : {};
  const isBehind = LISTS.includes(path) || priority === 'background' || priority > 0;
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
 * @param {{queue: import('./serve-queue.js').Queue, model: any, path: string, body: any, key: number,
 *   sent: {socket: object, body: import('./serve-body.js').Body}}} asked
 * @param {(body: any) => any} begin
 */
export function inTurn({ queue, model, path, body, key, sent }, begin) {
  if (path === '/responses' && body?.background === true) return begin(body);
  const place = queue.enter({ key, socket: sent.socket, ...loadOf(path, body) });
  try {
    if (!place.turn) return holding(place, begin(body));
    CHECKS[path]?.(body, model);
    sent.body.forget();
    return new Queued(place, () => begin(sent.body.parse()), { stream: streams(path, body), wire: SENT[path] ?? WIRES.openai });
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

  /** @param {import('./serve-queue.js').Place} place @param {() => any} begin @param {{stream: boolean, wire: any}} how pieces are sent */
  constructor(place, begin, { stream, wire }) {
    this.#place = place;
    this.stream = stream;
    this.wire = wire;
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

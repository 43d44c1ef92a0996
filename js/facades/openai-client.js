// SPDX-License-Identifier: MIT
// The OpenAI API of a Model for who calls it in the same program: as the official client's methods, and as a fetch for that client and everything
// built on it. Nothing leaves the page. What is asked and answered is what `quern serve` takes and gives (openai-api.js).

import { abortable, reasonOf } from '../shared/clock.js';
import { CREATE, listObject, modelObject } from './openai-api.js';
import { errorOf, retryHeaders } from './openai-error.js';
import { bodyOf } from './openai-tools.js';
import { REQUEST_ID, requestId } from './request-id.js';
import { toEvents } from './sse.js';

/** A request that was refused or has failed, with the fields that the official client's errors have. */
export class APIError extends Error {
  name = 'APIError';

  /** @param {{status: number, error: {message: string, type: string, param: string | null, code: string}}} failure @param {unknown} cause */
  constructor({ status, error }, cause) {
    super(`${status} ${error.message}`, { cause });
    const { type, param, code } = error;
    Object.assign(this, { status, error, type, param, code });
  }
}

/** Chunks, read once. */
class Stream {
  #work;
  #chunks;
  #body;
  controller = new AbortController();

  constructor(work, body) {
    this.#work = work;
    this.#chunks = work.chunks();
    this.#body = body;
    this.controller.signal.addEventListener('abort', () => work.stop(), { once: true });
  }

  async* [Symbol.asyncIterator]() {
    try {
      yield* this.#chunks;
    } catch (failure) {
      throw new APIError(errorOf(failure, this.#body), failure);
    }
  }

  /** Each as a line of JSON. @returns {ReadableStream<Uint8Array>} */
  toReadableStream() { return bytesOf(this, (chunk) => `${JSON.stringify(chunk)}\n`, this.#work); }
}

/** Texts as they are asked for. Who cancels it ends the work, also while a piece is waited for. @param {(value: any) => string} textOf */
function bytesOf(iterable, textOf, work) {
  const iterator = iterable[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(textOf(value)));
    },
    async cancel() {
      work.stop();
      await iterator.return?.();
    },
  });
}

/** @param {{info: any}} model @param {{name?: string}} options */
function identityOf({ info }, { name }) {
  return { name: name ?? (info.name || 'quern'), fingerprint: 'quern' };
}

/** Work that the caller's signal ends. @returns {Promise<any>} what is taken of it once it is there */
async function within(signal, work, take) {
  signal?.throwIfAborted();
  const stop = () => work.stop();
  signal?.addEventListener('abort', stop, { once: true });
  const answer = take(work);
  (work.ended ?? answer).catch(() => {}).then(() => signal?.removeEventListener('abort', stop));
  return signal ? abortable(answer, signal) : answer;
}

/** @returns {Promise<any>} the whole answer, or a stream */
async function created(model, path, body, identity, signal) {
  try {
    const work = CREATE[path](model, body, identity);
    return await within(signal, work, async () => (work.stream ? work.accepted.then(() => work) : work.whole()));
  } catch (failure) {
    throw signal?.aborted ? reasonOf(signal) : failure;
  }
}

/** Documented in openai.d.ts. */
export function openai(model, options) {
  const identity = identityOf(model, options ?? {});
  const create = (path) => async (body, given) => {
    const { signal } = given ?? {};
    const failed = (failure) => { throw signal?.aborted ? failure : new APIError(errorOf(failure, body), failure); };
    const answer = await created(model, path, body, identity, signal).catch(failed);
    return answer.chunks ? new Stream(answer, body) : answer;
  };
  const described = modelObject(model.info, identity.name, Math.floor(Date.now() / 1000));
  return {
    chat: { completions: { create: create('/chat/completions') } },
    completions: { create: create('/completions') },
    embeddings: { create: create('/embeddings') },
    rerank: create('/rerank'),
    models: { list: async () => listObject([described]), retrieve: async () => described },
  };
}

// --- as a fetch ---

const json = (status, value, headers = {}) => (
  new Response(JSON.stringify(value), { status, headers: { ...headers, 'Content-Type': 'application/json' } }));

const refused = (status, message, code) => json(status, { error: { message, type: 'invalid_request_error', param: null, code } });

function failed(failure, body) {
  const { status, error, retry } = errorOf(failure, body);
  return json(status, { error }, retryHeaders(retry));
}

async function sentBody(input, init) {
  const given = init?.body ?? (input instanceof Request ? input.body : null);
  const text = typeof given === 'string' ? given : await new Response(given).text();
  return bodyOf(text);
}

async function answered(model, path, identity, signal, body) {
  try {
    const answer = await created(model, path, body, identity, signal);
    if (!answer.chunks) return json(200, answer);
    const events = toEvents(answer.chunks(), (failure) => errorOf(failure, body).error);
    const headers = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-cache' };
    return new Response(bytesOf(events, String, answer), { headers });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    return failed(failure, body);
  }
}

/** Documented in openai.d.ts. */
export function openaiFetch(model, options) {
  const answer = answerer(model, options ?? {});
  return async (input, init) => {
    const given = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined)).get(REQUEST_ID);
    const response = await answer(input, init);
    response.headers.set(REQUEST_ID, requestId(given));
    return response;
  };
}

/** @returns {(input: any, init?: any) => Promise<Response>} */
function answerer(model, options) {
  const identity = identityOf(model, options);
  const created = Math.floor(Date.now() / 1000);
  return async (input, init) => {
    const isRequest = input instanceof Request;
    const { pathname } = new URL(isRequest ? input.url : String(input), 'http://model.invalid');
    const signal = init?.signal ?? (isRequest ? input.signal : undefined) ?? undefined;
    signal?.throwIfAborted();
    const method = (init?.method ?? (isRequest ? input.method : 'GET')).toUpperCase();
    const path = Object.keys(CREATE).find((known) => pathname.endsWith(known));
    if (path && method === 'POST') {
      const body = await sentBody(input, init).catch(() => undefined);
      return body === undefined ? refused(400, 'The body is no JSON.', 'invalid_request') : answered(model, path, identity, signal, body);
    }
    const one = modelObject(model.info, identity.name, created);
    if (/\/models$/.test(pathname) && method === 'GET') return json(200, listObject([one]));
    if (/\/models\/[^/]+$/.test(pathname) && method === 'GET') return json(200, one);
    if (path) return refused(405, `The method ${method} is not taken here.`, 'method_not_allowed');
    return refused(404, 'There is nothing at this path.', 'not_found');
  };
}

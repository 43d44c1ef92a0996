// SPDX-License-Identifier: MIT
// The OpenAI API of a Model for callers in the same program: as the methods of the official client, and as a fetch for
// that client and everything built on it. Nothing leaves the page. Requests and answers are the same as those of `quern
// serve` (openai-api.js).

import { bytesOf } from '../page/reply.js';
import { abortable, reasonOf } from '../shared/clock.js';
import { CREATE, RESPONSES, listObject, modelObject, named } from './openai-api.js';
import { errorIn } from './dialect.js';
import { retryHeaders } from './openai-error.js';
import { bodyOf } from './openai-tools.js';
import { REQUEST_ID, requestId } from './request-id.js';
import { Shelf } from './responses-store.js';
import { toPieces } from './sse.js';

/** A request that was refused or has failed, with the same fields as errors of the official client. */
export class APIError extends Error {
  name = 'APIError';

  /**
   * @param {{status: number, error: {message: string, type: string, param: string | null, code: string}}} failure
   * @param {unknown} cause
   */
  constructor({ status, error }, cause) {
    super(`${status} ${error.message}`, { cause });
    const { type, param, code } = error;
    Object.assign(this, { status, error, type, param, code });
  }
}

/** Chunks, which can be read once. */
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
      throw new APIError(errorIn(failure, this.#body), failure);
    }
  }

  /** One line of JSON for each chunk. @returns {ReadableStream<Uint8Array>} */
  toReadableStream() {
    return bytesOf(this, { stop: () => this.#work.stop(), textOf: (chunk) => `${JSON.stringify(chunk)}\n` });
  }
}

/** What an API object needs. @param {any} model @param {{name?: string} | null} [options] */
function faceOf(model, options) {
  const identity = { name: options?.name ?? (model.info.name || 'quern'), fingerprint: 'quern' };
  return {
    model,
    identity,
    shelf: new Shelf(),
    described: modelObject(model.info, identity.name, Math.floor(Date.now() / 1000)),
  };
}

/** Runs work that the caller's signal ends. @returns {Promise<any>} the result of `take` */
async function within(signal, work, take) {
  signal?.throwIfAborted();
  const stop = () => work.stop();
  signal?.addEventListener('abort', stop, { once: true });
  const answer = take(work);
  (work.ended ?? answer).catch(() => {}).then(() => signal?.removeEventListener('abort', stop));
  return signal ? abortable(answer, signal) : answer;
}

/** @returns {Promise<any>} the whole answer, or the work if it streams */
async function created({ model, identity, shelf }, path, body, signal) {
  try {
    const work = CREATE[path].begin(model, body, identity, shelf);
    return await within(signal, work, async () => (work.stream ? work.accepted.then(() => work) : work.whole()));
  } catch (failure) {
    throw signal?.aborted ? reasonOf(signal) : failure;
  }
}

const MISSING = {
  status: 404,
  error: {
    message: 'This response is not stored here, or no longer.',
    type: 'invalid_request_error',
    param: 'response_id',
    code: 'not_found',
  },
};

/** The client's methods for stored responses. */
function storedMethods({ shelf }) {
  const ask = (method, rest) => async (id, query) => {
    let found;
    try {
      found = await RESPONSES[`/responses/{id}${rest}`][method](shelf, id, new URLSearchParams(query ?? {}));
    } catch (failure) {
      throw new APIError(errorIn(failure), failure);
    }
    if (!found) throw new APIError(MISSING, undefined);
    return found;
  };
  return {
    retrieve: ask('GET', ''),
    delete: ask('DELETE', ''),
    cancel: ask('POST', '/cancel'),
    inputItems: { list: ask('GET', '/input_items') },
  };
}

/** Documented in openai.d.ts. */
export function openai(model, options) {
  const face = faceOf(model, options);
  const create = (path) => async (body, given) => {
    const { signal } = given ?? {};
    const failed = (failure) => { throw signal?.aborted ? failure : new APIError(errorIn(failure, body), failure); };
    const answer = await created(face, path, body, signal).catch(failed);
    return answer.chunks ? new Stream(answer, body) : answer;
  };
  return {
    chat: { completions: { create: create('/chat/completions') } },
    completions: { create: create('/completions') },
    responses: { create: create('/responses'), ...storedMethods(face) },
    embeddings: { create: create('/embeddings') },
    rerank: create('/rerank'),
    models: { list: async () => listObject([face.described]), retrieve: async () => face.described },
  };
}

// --- as a fetch ---

const json = (status, value, headers = {}) => (
  new Response(JSON.stringify(value), { status, headers: { ...headers, 'Content-Type': 'application/json' } }));

const refused = (status, message, code) =>
  json(status, { error: { message, type: 'invalid_request_error', param: null, code } });

const notTaken = (method) => refused(405, `The method ${method} is not allowed here.`, 'method_not_allowed');

function failed(failure, body) {
  const { status, error, retry } = errorIn(failure, body);
  return json(status, { error }, retryHeaders(retry));
}

async function sentBody(input, init) {
  const given = init?.body ?? (input instanceof Request ? input.body : null);
  const text = typeof given === 'string' ? given : await new Response(given).text();
  return bodyOf(text);
}

async function answered(face, path, signal, body) {
  try {
    const answer = await created(face, path, body, signal);
    if (!answer.chunks) return json(200, answer);
    const { wire } = CREATE[path];
    const pieces = toPieces(answer, wire, (failure) => ({ error: errorIn(failure, body).error }));
    const headers = { 'Content-Type': wire.type, 'Cache-Control': 'no-cache' };
    return new Response(bytesOf(pieces, { stop: () => answer.stop() }), { headers });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    return failed(failure, body);
  }
}

/** Answers a request about a named thing. */
async function found({ described, shelf }, { key, id }, method, query) {
  const methods = key === '/models/{id}' ? { GET: () => described } : RESPONSES[key];
  if (!methods) return null;
  if (!Object.hasOwn(methods, method)) return notTaken(method);
  try {
    const answer = await methods[method](shelf, id, query);
    return answer ? json(200, answer) : json(404, { error: MISSING.error });
  } catch (failure) {
    return failed(failure);
  }
}

/** Documented in openai.d.ts. */
export function openaiFetch(model, options) {
  const answer = answerer(faceOf(model, options));
  return async (input, init) => {
    const given = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined)).get(REQUEST_ID);
    const response = await answer(input, init);
    response.headers.set(REQUEST_ID, requestId(given));
    return response;
  };
}

/** @returns {(input: any, init?: any) => Promise<Response>} */
function answerer(face) {
  return async (input, init) => {
    const isRequest = input instanceof Request;
    const { pathname, searchParams } = new URL(isRequest ? input.url : String(input), 'http://model.invalid');
    const signal = init?.signal ?? (isRequest ? input.signal : undefined) ?? undefined;
    signal?.throwIfAborted();
    const method = (init?.method ?? (isRequest ? input.method : 'GET')).toUpperCase();
    const path = Object.keys(CREATE).find((known) => pathname.endsWith(known));
    if (path && method !== 'POST') return notTaken(method);
    if (path) {
      const body = await sentBody(input, init).catch(() => undefined);
      return body === undefined
        ? refused(400, 'The body is not JSON.', 'invalid_request')
        : answered(face, path, signal, body);
    }
    if (/\/models$/.test(pathname) && method === 'GET') return json(200, listObject([face.described]));
    const name = named(pathname);
    return (
      (name && (await found(face, name, method, searchParams))) ??
      refused(404, 'There is nothing at this path.', 'not_found')
    );
  };
}

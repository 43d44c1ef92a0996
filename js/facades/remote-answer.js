// SPDX-License-Identifier: MIT
// Sends requests to a remote server, and converts its failures to errors of this package: by the API's statuses and
// codes, and with a time limit for every wait.

import { reasonOf } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { fromBase64 } from './openai-vectors.js';

/** Most letters of a server's message that are shown. */
const MOST_WORDS = 300;

/** @param {number} status @param {{error?: {message?: string, code?: string, param?: string}}} [body] */
export function failureOf(status, body) {
  const { message, code, param } = body?.error ?? {};
  const words =
    typeof message === 'string' ? message.slice(0, MOST_WORDS) : `The server answered with status ${status}.`;
  if (code === 'context_length_exceeded') return new QuernError('use/context', words);
  if (status === 400 || status === 422)
    return new QuernError('use/param', words, { detail: { param: param ?? undefined } });
  if (status === 429) return new QuernError('use/busy', words, { retryable: true });
  return new QuernError('net/http', words, { detail: { status }, retryable: status >= 500 });
}

function unreachable(url, error) {
  const why = String(error?.cause?.code ?? error?.message ?? error).slice(0, 100);
  return new QuernError('net/unreachable', `${new URL(url).origin} cannot be reached (${why}).`, { cause: error });
}

/** Most bytes of answers that are read whole: failures; vectors and lists of models. */
const MOST_FAILURE = 2 ** 20;
const MOST_JSON = 2 ** 28;

const stalled = (ms) => new QuernError('net/stalled', `The server has sent nothing for ${ms / 1000} seconds.`);

/** @param {number} ms Infinity: never */
const after = (ms, act) => (ms === Infinity ? undefined : setTimeout(act, ms));

/**
 * Sends a request.
 * @param {{url: string, headers: Record<string, string>, silenceMs: number}} server
 * @param {string} path
 * @param {{body?: object, signal?: AbortSignal}} request
 * @returns {Promise<Response>} a response with a good status
 */
export async function reach(server, path, request) {
  const { url, headers, silenceMs } = server;
  const { body, signal } = request;
  const silent = new AbortController();
  const either = AbortSignal.any([silent.signal, signal].filter(Boolean));
  const timer = after(silenceMs, () => silent.abort(stalled(silenceMs)));
  const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
  let response;
  try {
    response = await fetch(url + path, {
      ...post,
      headers: { ...type, ...headers },
      signal: either,
      redirect: 'error',
      credentials: 'omit',
    });
  } catch (error) {
    throw either.aborted ? reasonOf(either) : unreachable(url, error);
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  const why = await jsonOf(response, server, signal, MOST_FAILURE).catch(() => undefined);
  throw signal?.aborted ? reasonOf(signal) : failureOf(response.status, why);
}

/**
 * Yields the bytes of an answer. A server that sends nothing for a long time is given up; many send comments while a
 * reply waits.
 * @param {Response} response
 * @param {{silenceMs: number}} limits
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<Uint8Array>}
 */
export async function* bytesOf(response, { silenceMs }, signal) {
  const reader = response.body.getReader();
  let timer;
  const silent = () => new Promise((_, reject) => { timer = after(silenceMs, () => reject(stalled(silenceMs))); });
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), silent()]).finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (signal?.aborted) throw reasonOf(signal);
    throw error instanceof QuernError
      ? error
      : new QuernError('net/truncated', 'The connection broke off within the reply.', { cause: error });
  } finally {
    reader.cancel().catch(() => {});
  }
}

const unusable = (why) =>
  new QuernError('net/truncated', `The server has sent an unusable answer (${why}).`);

/**
 * Reads a whole answer.
 * @param {Response} response
 * @param {{silenceMs: number}} limits
 * @param {AbortSignal} [signal]
 * @param {number} [most] bytes
 */
export async function jsonOf(response, limits, signal, most = MOST_JSON) {
  const pieces = [];
  let size = 0;
  for await (const piece of bytesOf(response, limits, signal)) {
    size += piece.length;
    if (size > most) throw unusable(`more than ${most} bytes`);
    pieces.push(piece);
  }
  try {
    return JSON.parse(await new Blob(pieces).text());
  } catch (error) {
    throw unusable(String(error?.message).slice(0, 100));
  }
}

/** Parses a vector from a server; null if it is not one. */
function vectorOf(embedding) {
  try {
    if (typeof embedding === 'string') return fromBase64(embedding);
  } catch {
    return null;
  }
  return Array.isArray(embedding) && embedding.every(Number.isFinite) ? Float32Array.from(embedding) : null;
}

/** The vectors in an answer of /embeddings, one for each text. @param {any} answer */
export function vectorsIn(answer, { length }) {
  const vectors = new Array(length).fill(null);
  for (const one of Array.isArray(answer?.data) ? answer.data : []) {
    const { index, embedding } = one ?? {};
    if (Number.isInteger(index) && index >= 0 && index < length) vectors[index] = vectorOf(embedding);
  }
  const missing = vectors.findIndex((vector) => !vector?.length);
  if (missing >= 0) throw unusable(`there is none for text ${missing}`);
  return {
    vectors,
    tokens: answer.usage?.prompt_tokens ?? 0,
    truncated: Array.isArray(answer.truncated) ? answer.truncated : [],
  };
}

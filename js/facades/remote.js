// SPDX-License-Identifier: MIT
// A model behind a server of the OpenAI API, with the interface of a loaded one: a program that outgrows a machine
// changes one line. It is never used behind load(), whose promise is that nothing leaves the page.

import { reasonOf } from '../shared/clock.js';
import { QuernError, badParam } from '../shared/errors.js';
import { checkMessages } from '../page/messages.js';
import { checkOptions } from '../page/options.js';
import { checkPart } from '../page/parts.js';
import { integer } from '../page/values.js';
import { Reply } from '../page/reply.js';
import { chatBody, completeBody, embedBody } from './remote-request.js';
import { bytesOf, failureOf, jsonOf, reach, vectorsIn } from './remote-answer.js';
import { Gathered } from './remote-gathered.js';
import { eventsOf } from './sse.js';

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** @returns {any} the content of one event of the stream */
function chunkOf(data) {
  const chunk = JSON.parse(data);
  if (chunk.error) throw failureOf(500, chunk);
  return chunk;
}

class RemoteModel {
  #server;
  #model;
  #info;
  #open = new Set();      // AbortControllers of work in progress
  #disposed = null;

  constructor(server, model, info) {
    this.#server = server;
    this.#model = model;
    this.#info = Object.freeze(info);
  }

  get info() { return this.#info; }

  chat(messages, options) {
    return this.#reply('/chat/completions', 'chat', options, (checked) => (
      chatBody(this.#model, checkMessages(messages, checked.continue, checkPart), checked)));
  }

  complete(prompt, options) {
    return this.#reply('/completions', 'complete', options, (checked) => {
      if (typeof prompt !== 'string') throw badParam('prompt', 'must be a text for a remote model');
      return completeBody(this.#model, prompt, checked);
    });
  }

  async embed(given, options) {
    const { signal, ...choices } = options ?? {};
    if (this.#disposed) throw this.#disposed;
    const { texts, body } = embedBody(this.#model, given, choices);
    return this.#within(checkOptions('call', { signal }).signal, async (one) =>
      vectorsIn(
        await jsonOf(await reach(this.#server, '/embeddings', { body, signal: one }), this.#server, one),
        texts,
      ),
    );
  }

  async rank() { throw onlyHere('rank()'); }
  async tokenize() { throw onlyHere('tokenize()'); }
  async detokenize() { throw onlyHere('detokenize()'); }
  async countTokens() { throw onlyHere('countTokens()'); }
  async logits() { throw onlyHere('logits()'); }
  async look() { throw onlyHere('look()'); }
  async profile() { throw onlyHere('profile()'); }
  async saved() { throw onlyHere('saved()'); }
  async forget() { throw onlyHere('forget()'); }

  /** Work in progress fails with `engine/disposed`. */
  async dispose() {
    this.#disposed ??= new QuernError('engine/disposed', 'The model has been disposed of.');
    for (const controller of this.#open) controller.abort(this.#disposed);
  }

  [asyncDispose]() { return this.dispose(); }

  #reply(path, kind, options, bodyOf) {
    return new Reply((push) => {
      const controller = new AbortController();
      let stopped = false;
      const work = async () => {
        if (this.#disposed) throw this.#disposed;
        const { signal, onPrefill: _, ...checked } = checkOptions(kind, options);
        refuseOnlyHere(checked, kind);
        const body = await bodyOf(checked);
        signal?.throwIfAborted();
        return this.#within(
          signal,
          (one) => this.#read(path, body, one, { push, checked, isStopped: () => stopped }),
          controller,
        );
      };
      return { promise: work(), stop() { stopped = true; controller.abort(); } };
    });
  }

  /** Runs work that the caller's signal, or dispose(), ends. */
  async #within(signal, work, controller = new AbortController()) {
    if (this.#disposed) throw this.#disposed;
    signal?.throwIfAborted();
    const onAbort = () => controller.abort(reasonOf(signal));
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#open.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      this.#open.delete(controller);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Reads a reply. A connection that stop() has ended is a regular end of the reply, not a failure. */
  async #read(path, body, signal, { push, checked, isStopped }) {
    const gathered = new Gathered(checked);
    try {
      const response = await reach(this.#server, path, { body, signal });
      for await (const data of eventsOf(bytesOf(response, this.#server, signal))) {
        if (data === '[DONE]') break;
        gathered.take(chunkOf(data), push);
      }
    } catch (error) {
      if (isStopped()) return gathered.end();
      if (signal.aborted || error instanceof QuernError) throw error;
      const why = String(error?.message).slice(0, 100);
      throw new QuernError('net/truncated', `The server has sent an unusable reply (${why}).`, {
        cause: error,
      });
    }
    if (!gathered.whole) throw new QuernError('net/truncated', 'The server has ended the reply too early.');
    return gathered.end();
  }
}

const onlyHere = (name) => badParam(name, 'works with loaded models only, not with remote ones');

/** Options that servers do not support, or only under other names. */
const ONLY_HERE = [
  'save',
  'numberImages',
  'overflow',
  'choices',
  'regex',
  'grammar',
  'whitespace',
  'logprobs',
  'promptLogprobs',
  'suffix',
];
const ONLY_IN_CHATS = ['schema', 'json'];

function refuseOnlyHere(checked, kind) {
  const all = kind === 'chat' ? ONLY_HERE : [...ONLY_HERE, ...ONLY_IN_CHATS];
  const name = all.find((one) => checked[one] != null && checked[one] !== false && checked[one] !== 'error');
  if (name) throw onlyHere(`options.${name}`);
}

function addressOf(url) {
  if (!URL.canParse(String(url)) || !/^https?:$/.test(new URL(String(url)).protocol)) {
    throw badParam('url', "must be a server's address with its path, such as 'https://example.org/v1'");
  }
  return String(url).replace(/\/+$/, '');
}

/** Headers of every request. Errors never repeat the content of a header. */
function headersOf({ apiKey, headers }) {
  if (apiKey != null && !/^[\x21-\x7e]+$/.test(apiKey))
    throw badParam('options.apiKey', 'must be visible ASCII letters without spaces');
  try {
    return Object.fromEntries(new Headers({ ...(apiKey && { Authorization: `Bearer ${apiKey}` }), ...headers }));
  } catch {
    throw badParam('options.headers', 'must have valid names and values');
  }
}

/** Documented in remote.d.ts. */
export async function remote(url, options) {
  const { model, signal } = options ?? {};
  const silenceMs = options?.silenceMs ?? 300_000;
  if (model != null && typeof model !== 'string') throw badParam('options.model', 'must be a string');
  const problem = silenceMs === Infinity ? null : integer(1, 2 ** 31 - 1)(silenceMs);
  if (problem) throw badParam('options.silenceMs', `${problem}, or Infinity`);
  const server = { url: addressOf(url), headers: headersOf(options ?? {}), silenceMs };
  const response = await reach(server, '/models', { signal });
  const answer = await jsonOf(response, server, signal).catch((error) => {
    if (signal?.aborted || error.code === 'net/stalled') throw error;
  });
  const list = Array.isArray(answer?.data) ? answer.data.filter((one) => typeof one?.id === 'string') : [];
  if (list.length === 0) {
    throw new QuernError('net/http', `There are no models at ${server.url}/models.`, { detail: { status: 200 } });
  }
  const found = model == null ? list[0] : list.find(({ id }) => id === model);
  if (!found)
    throw badParam(
      'options.model',
      `is not one of the server's models: ${list
        .slice(0, 8)
        .map(({ id }) => id)
        .join(', ')}`,
    );
  return new RemoteModel(server, found.id, {
    ...found,
    name: found.id,
    contextSize: found.max_model_len ?? found.meta?.n_ctx ?? 0,
  });
}

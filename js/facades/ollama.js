// SPDX-License-Identifier: MIT
// Ollama's API over a Model: POST /api/chat, /api/generate, /api/embed and /api/embeddings. By default an answer comes
// in lines of JSON; the last line has the timings.

import { QuernError } from '../shared/errors.js';
import { checkBody, noted } from './dialect.js';
import { wordOf } from './openai-limits.js';
import { flag } from './openai-request.js';
import { embedding } from './openai-vectors.js';
import { ollamaChat, ollamaGenerate, ollamaRaw } from './ollama-request.js';
import { durationsOf } from './timings.js';
import { Turn } from './turn.js';

const REASONS = { length: 'length', context: 'length', aborted: 'length' };

const callOf = ({ id, name, arguments: given }, index) => ({ id, function: { index, name, arguments: given } });

/** The content of an answer by path: of the whole, or of a piece, whose fields are mostly empty. */
const SAYS = {
  chat: ({ text = '', thinking, toolCalls = [] }) => ({ message: {
    role: 'assistant', content: text, ...(thinking && { thinking }),
    ...(toolCalls.length && { tool_calls: toolCalls.map(callOf) }),
  } }),
  generate: ({ text = '', thinking }) => ({ response: text, ...(thinking && { thinking }) }),
};

/** The content of pieces by the type of event. */
const PIECES = {
  text: ({ text }) => ({ text }), thinking: ({ text }) => ({ thinking: text }),
  'tool-call': ({ id, name, arguments: given }) => ({ toolCalls: [{ id, name, arguments: given }] }),
};

const logprobsOf = (list) => (
  list ? { logprobs: list.map((one) => ({ ...wordOf(one), top_logprobs: one.top.map(wordOf) })) } : {});

/** An answer in progress; see turn.js. */
class Answer {
  #model;
  #says;
  #result;

  constructor(model, says) {
    this.#model = model;
    this.#says = says;
  }

  #head() { return { model: this.#model, created_at: new Date().toISOString() }; }

  #last() {
    return { done: true, done_reason: REASONS[this.#result.finishReason] ?? 'stop', ...durationsOf(this.#result) };
  }

  * begin() {}

  * event(event) {
    const piece = Object.hasOwn(PIECES, event.type) ? PIECES[event.type](event) : null;
    if (piece) yield { ...this.#head(), ...this.#says(piece), done: false, ...logprobsOf(event.logprobs) };
  }

  * end(result) {
    this.#result = result;
    yield { ...this.#head(), ...this.#says({}), ...this.#last() };
  }

  whole() {
    return { ...this.#head(), ...this.#says(this.#result), ...this.#last(), ...logprobsOf(this.#result.logprobs) };
  }
}

/** The answer to a request that only loads a model. */
class Loaded {
  accepted = Promise.resolve();
  ended = Promise.resolve();
  #answer;

  constructor(model, says, stream) {
    this.#answer = { model, created_at: new Date().toISOString(), ...says({}), done: true, done_reason: 'load' };
    this.stream = stream;
  }

  async* chunks() { yield this.#answer; }
  async whole() { return this.#answer; }
  stop() {}
}

const streams = (body) => body.stream == null || flag(body, 'stream');

/**
 * Starts a request of POST /api/chat.
 * @param {Pick<import('../index.d.ts').Model, 'chat'>} model
 * @param {any} body
 * @param {{name: string}} identity
 */
export function chat(model, body, { name }) {
  checkBody(body);
  if (body.messages == null || body.messages.length === 0) return new Loaded(name, SAYS.chat, streams(body));
  const { messages, options, stream } = ollamaChat(body);
  return new Turn((begun) => model.chat(messages, { ...options, ...begun }), new Answer(name, SAYS.chat), stream);
}

/**
 * Starts a request of POST /api/generate.
 * @param {Pick<import('../index.d.ts').Model, 'chat' | 'complete' | 'info'>} model
 */
export function generate(model, body, { name }) {
  checkBody(body);
  if (body.prompt == null || body.prompt === '') return new Loaded(name, SAYS.generate, streams(body));
  const isRaw = flag(body, 'raw');
  const { messages, prompts, options, stream } = isRaw ? ollamaRaw(body, model.info) : ollamaGenerate(body);
  const begin = (begun) =>
    isRaw ? model.complete(prompts[0], { ...options, ...begun }) : model.chat(messages, { ...options, ...begun });
  return new Turn(begin, new Answer(name, SAYS.generate), stream);
}

// --- vectors ---

/**
 * Starts a request for vectors.
 * @param {(answer: {data: {embedding: number[]}[], usage?: any, truncated?: number[]}) => object} asTold converts the
 *   answer to this API's form
 */
function vectorsOf(model, body, identity, asked, terms, asTold) {
  const work = embedding(model, noted(body, asked, terms), identity);
  return { stream: false, stop: () => work.stop(), whole: async () => asTold({ data: [], ...await work.whole() }) };
}

/** Starts a request of POST /api/embed. @param {Pick<import('../index.d.ts').Model, 'embed'>} model */
export function embed(model, body, identity) {
  checkBody(body);
  const { input, dimensions } = body;
  return vectorsOf(model, body, identity, { input, dimensions }, {}, ({ data, usage, truncated = [] }) => {
    if (body.truncate === false && truncated.length > 0) {
      const message = `input[${truncated[0]}] has more tokens than the context, and truncate is false.`;
      throw new QuernError('use/context', message, { detail: { param: 'input' } });
    }
    return {
      model: identity.name,
      embeddings: data.map(({ embedding: vector }) => vector),
      total_duration: 0,
      load_duration: 0,
      prompt_eval_count: usage?.prompt_tokens ?? 0,
    };
  });
}

/**
 * Starts a request of POST /api/embeddings, the older API.
 * @param {Pick<import('../index.d.ts').Model, 'embed'>} model
 */
export function embeddings(model, body, identity) {
  checkBody(body);
  const told = ({ data }) => ({ embedding: data[0]?.embedding ?? [] });
  return vectorsOf(model, body, identity, { input: body.prompt }, { input: 'prompt' }, told);
}

// SPDX-License-Identifier: MIT
// The OpenAI API over a Model, without HTTP: a request starts replies, and a Completion returns them as one object or
// as chunks. Chunks are made as pieces arrive; chunks of several choices come in the order in which they are ready.

import { Echo, bestOf } from './openai-echo.js';
import { chatLogprobs, textLogprobs } from './openai-limits.js';
import { chatRequest, completionRequest } from './openai-request.js';
import { CallDeltas, answeredCalls, writtenCalls } from './openai-tools.js';
import { timingsOf } from './timings.js';
import { randomId } from '../shared/random-id.js';
import { sum } from '../shared/sum.js';
import { Work } from './work.js';

export { errorOf } from './openai-error.js';
export { chatRequest } from './openai-request.js';
export { bodyOf } from './openai-tools.js';

/** Seeds of choices are consecutive, within the whole numbers that the engine accepts. */
const SEEDS = Number.MAX_SAFE_INTEGER;

const REASONS = { stop: 'stop', 'tool-calls': 'tool_calls', length: 'length', context: 'length', aborted: 'length' };

/** Forms of the two kinds of answers. */
const CHAT = {
  prefix: 'chatcmpl-', object: 'chat.completion', chunk: 'chat.completion.chunk',
  whole: (result, written, shape) => {
    const { text, thinking } = result;
    const calls = answeredCalls(result, written, shape);
    const content = text || (Object.keys(calls).length ? null : '');
    return {
      message: {
        role: 'assistant',
        content,
        ...(thinking && { reasoning_content: thinking }),
        ...calls,
        refusal: null,
      },
    };
  },
  first: { delta: { role: 'assistant', content: '' } },
  piece: (event, calls) => {
    const { type, text } = event;
    const delta =
      type === 'text' ? { content: text } : type === 'thinking' ? { reasoning_content: text } : calls.take(event);
    return delta && { delta };
  },
  last: { delta: {} },
  logprobs: chatLogprobs,
};

const TEXT = {
  prefix: 'cmpl-',
  object: 'text_completion',
  chunk: 'text_completion',
  whole: ({ text }) => ({ text }),
  first: null,
  piece: ({ text }) => ({ text }),
  last: { text: '' },
  logprobs: textLogprobs,
};

/** Yields values of several iterators as they arrive. */
async function* merged(iterators) {
  const ask = (iterator) => {
    const answer = iterator.next().then((step) => ({ iterator, step }));
    answer.catch(() => {});     // it may fail before it is awaited
    return answer;
  };
  const asked = new Map(iterators.map((iterator) => [iterator, ask(iterator)]));
  while (asked.size) {
    const { iterator, step } = await Promise.race(asked.values());
    if (step.done) asked.delete(iterator);
    else {
      asked.set(iterator, ask(iterator));
      yield step.value;
    }
  }
}

/** Choices of one prompt share it: its tokens count once. */
function usageOf(results, n) {
  const firsts = results.filter((_, i) => i % n === 0).map(({ usage }) => usage);
  const prompt = sum(firsts.map(({ promptTokens }) => promptTokens));
  const completion = sum(results.map(({ usage }) => usage.completionTokens));
  const thinking = sum(results.map(({ usage }) => usage.thinkingTokens ?? 0));
  return {
    prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum(firsts.map(({ cachedTokens }) => cachedTokens)) },
    completion_tokens_details: { reasoning_tokens: thinking },
  };
}

/** The options of each choice of a prompt. */
function choicesOf({ n, options }) {
  const first = options.seed ?? Math.floor(Math.random() * SEEDS);
  return Array.from({ length: n }, (_, i) => ({ ...options, seed: i === 0 ? first : (first + i) % SEEDS }));
}

/** Answers to one request, in progress. */
export class Completion extends Work {
  #kind;
  #request;
  #head;

  /**
   * @param {typeof CHAT | typeof TEXT} kind
   * @param {import('./openai-request.js').Request} request
   * @param {{name: string, fingerprint: string}} identity of the model
   * @param {((options: object) => import('../index.d.ts').Reply)[]} begin one function for each prompt
   */
  constructor(kind, request, { name, fingerprint }, begin) {
    super(
      begin.flatMap((start) => choicesOf(request).map((options) => (begun) => start({ ...options, ...begun }))),
      request.stream,
    );
    this.#kind = kind;
    this.#request = request;
    this.#head = {
      id: kind.prefix + randomId(),
      created: Math.floor(Date.now() / 1000),
      model: name,
      system_fingerprint: fingerprint,
    };
  }

  /** Returns the whole answer. @returns {Promise<object>} */
  async whole() {
    const results = await this.results();
    const written = await Promise.all(this.replies.map(({ events }) => writtenCalls(events)));
    const choices = results.map((result, index) => ({
      index,
      ...this.#kind.whole(result, written[index], this.#request.shape),
      logprobs: this.#kind.logprobs(result.logprobs),
      finish_reason: this.#reason(result),
    }));
    const timings = this.#request.timings && { timings: timingsOf(results[0]) };
    return { object: this.#kind.object, ...this.#head, choices, usage: usageOf(results, this.#request.n), ...timings };
  }

  /**
   * Yields the answer as it arrives; it can be read once. If one choice fails, all end.
   * @returns {AsyncGenerator<object>}
   */
  async* chunks() {
    const { includeUsage, n } = this.#request;
    const head = { object: this.#kind.chunk, ...this.#head };
    const usage = includeUsage ? { usage: null } : {};
    try {
      const choices = this.replies.map((reply, index) => this.#choice(reply, index));
      for await (const choice of merged(choices))
        yield { ...head, choices: [choice], ...usage, ...(await this.#timingsAt(choice)) };
      if (includeUsage) yield { ...head, choices: [], usage: usageOf(await this.results(), n) };
    } finally {
      this.stop();
    }
  }

  /** The timings of a choice at its end, if they are requested. */
  async #timingsAt({ index, finish_reason: reason }) {
    return reason && this.#request.timings ? { timings: timingsOf(await this.replies[index].result) } : null;
  }

  #reason({ finishReason }) {
    return finishReason === 'tool-calls' && this.#request.shape?.isLegacy ? 'function_call' : REASONS[finishReason];
  }

  async* #choice(reply, index) {
    const { first, piece, last } = this.#kind;
    const calls = new CallDeltas(this.#request.shape);
    let letters = 0;        // letters and tokens so far
    let told = 0;
    const choice = (part, reason = null, logprobs = null) => ({ index, ...part, logprobs, finish_reason: reason });
    if (first) yield choice(first);
    for await (const event of reply.events) {
      const part = piece(event, calls);
      if (part) yield choice(part, null, this.#kind.logprobs(event.logprobs, letters));
      for (const { text } of event.logprobs ?? []) letters += text.length;
      told += event.logprobs?.length ?? 0;
    }
    const result = await reply.result;
    const { logprobs = [] } = result;
    // of the token that ended it
    const rest = logprobs.length > told ? this.#kind.logprobs(logprobs.slice(told), letters) : null;
    yield choice(last, this.#reason(result), rest);
  }
}

/**
 * Starts a request of POST /chat/completions. Wrong fields throw here; if the model refuses, `accepted` rejects.
 * @param {Pick<import('../index.d.ts').Model, 'chat'>} model
 * @param {unknown} body parsed JSON
 * @param {{name: string, fingerprint: string}} identity
 */
export function chatCompletion(model, body, identity) {
  const request = chatRequest(body);
  return new Completion(CHAT, request, identity, [(options) => model.chat(request.messages, options)]);
}

/** Selects the best of more choices than requested. */
class BestOf extends Completion {
  #best;

  constructor(kind, request, identity, begin) {
    super(kind, request, identity, begin);
    this.#best = request.best;
  }

  async whole() { return bestOf(await super.whole(), this.#best); }
}

/**
 * Starts a request of POST /completions.
 * @param {Pick<import('../index.d.ts').Model, 'complete' | 'detokenize' | 'info'>} model
 */
export function textCompletion(model, body, identity) {
  const request = completionRequest(body, model.info);
  const begin = request.prompts.map((prompt) => {
    const echo = request.echo ? new Echo(model, prompt, request.options.logprobs) : null;
    return (options) => (echo ? echo.begin(options) : model.complete(prompt, options));
  });
  return new (request.best ? BestOf : Completion)(TEXT, request, identity, begin);
}

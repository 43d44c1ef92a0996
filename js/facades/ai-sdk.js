// SPDX-License-Identifier: MIT
// A Model as a provider of the AI SDK: language model, embeddings and reranking. The SDK's interfaces are only types,
// so nothing of it is imported; ai-sdk-request.js converts requests. Versions 6 and 7 of the SDK both accept
// specification v3, and 6 nothing newer (Node 20 gets 6, since 7 needs Node 22). v4 differs in the form of files in a
// prompt, and both forms are accepted.

import { asQuernError } from '../shared/errors.js';
import { requestOf, sdkError } from './ai-sdk-request.js';

const PROVIDER = 'quern';

/** Most texts of one call of embed(); the engine reads them side by side. */
const MOST_TEXTS = 2048;

const REASONS = { stop: 'stop', 'tool-calls': 'tool-calls', length: 'length', context: 'length', aborted: 'other' };

const reasonFor = (reason) => ({ unified: REASONS[reason], raw: reason });

function usageOf({ promptTokens, cachedTokens, completionTokens, thinkingTokens, ...rest }) {
  const text = thinkingTokens === undefined ? undefined : completionTokens - thinkingTokens;
  return {
    inputTokens: {
      total: promptTokens,
      noCache: promptTokens - cachedTokens,
      cacheRead: cachedTokens,
      cacheWrite: undefined,
    },
    outputTokens: { total: completionTokens, text, reasoning: thinkingTokens },
    raw: { promptTokens, cachedTokens, completionTokens, thinkingTokens, ...rest },
  };
}

/** Metadata that only this provider has. */
function metadataOf({ timings, logprobs, dropped }) {
  return { [PROVIDER]: { timings, ...(logprobs && { logprobs }), ...(dropped && { dropped }) } };
}

/** Marks errors that may be repeated in the way that the SDK repeats them. */
function failure(error, body) {
  if (error?.name === 'AbortError' || error?.name === 'TimeoutError') return error;
  const { message, retryable } = asQuernError(error, 'call');
  return retryable
    ? sdkError('AI_APICallError', message, {
        url: `${PROVIDER}:`,
        requestBodyValues: body,
        isRetryable: true,
        cause: error,
      })
    : error;
}

const callOf = ({ id, name, arguments: given }) => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: name,
  input: JSON.stringify(given),
});

/** The parts of a stream: our events, in blocks with a beginning and an end. */
class Blocks {
  #put;
  #open = null;         // kind and id of the open block
  #count = 0;
  #calls = new Map();   // ids by index
  #input;               // the id of the call in progress

  constructor(put) {
    this.#put = put;
  }

  take(event) {
    const { type, text: delta } = event;
    if (type === 'text') this.#say('text', delta);
    else if (type === 'thinking') this.#say('reasoning', delta);
    else this.#call(event);
  }

  end() {
    if (this.#input !== undefined) this.#put({ type: 'tool-input-end', id: this.#input });
    this.#input = undefined;
    if (this.#open) this.#put({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = null;
  }

  #say(kind, delta) {
    if (this.#open?.kind !== kind) {
      this.end();
      this.#open = { kind, id: String(this.#count++) };
      this.#put({ type: `${kind}-start`, id: this.#open.id });
    }
    this.#put({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  #call({ type, index, id, name, delta, arguments: given }) {
    if (type === 'tool-call-start') {
      this.end();
      this.#calls.set(index, id);
      this.#input = id;
      this.#put({ type: 'tool-input-start', id, toolName: name });
    } else if (type === 'tool-call-delta') this.#put({ type: 'tool-input-delta', id: this.#calls.get(index), delta });
    else if (type === 'tool-call') {
      this.end();
      this.#put(callOf({ id, name, arguments: given }));
    }
  }
}

class Face {
  specificationVersion = 'v3';
  provider = PROVIDER;

  constructor(model, modelId) {
    this.model = model;
    this.modelId = modelId;
  }
}

class LanguageModel extends Face {
  /** The SDK itself fetches files from addresses. */
  supportedUrls = {};

  async doGenerate(options) {
    const { messages, given, warnings } = requestOf(options);
    const result = await this.model.chat(messages, given).result.catch((error) => { throw failure(error, given); });
    const { text, thinking, toolCalls = [] } = result;
    const content = [
      ...(thinking ? [{ type: 'reasoning', text: thinking }] : []),
      ...(text ? [{ type: 'text', text }] : []),
      ...toolCalls.map(callOf),
    ];
    return {
      content,
      finishReason: reasonFor(result.finishReason),
      usage: usageOf(result.usage),
      providerMetadata: metadataOf(result),
      warnings,
      request: { body: given },
      response: { timestamp: new Date(), modelId: this.modelId },
    };
  }

  /** Resolves once the model has begun, so that an error before that fails the call itself. */
  async doStream(options) {
    const { messages, given, warnings } = requestOf(options);
    const { modelId } = this;
    let onBegin;
    const begun = new Promise((resolve) => { onBegin = resolve; });
    const reply = this.model.chat(messages, { ...given, onPrefill: onBegin });
    const events = reply.events[Symbol.asyncIterator]();
    const first = events.next();
    first.catch(() => {});
    await Promise.race([begun, first]).catch((error) => { throw failure(error, given); });
    const stream = new ReadableStream({
      async start(controller) {
        const put = (part) => controller.enqueue(part);
        const blocks = new Blocks(put);
        put({ type: 'stream-start', warnings });
        put({ type: 'response-metadata', timestamp: new Date(), modelId });
        try {
          for (let step = await first; !step.done; step = await events.next()) blocks.take(step.value);
          blocks.end();
          const result = await reply.result;
          put({
            type: 'finish',
            finishReason: reasonFor(result.finishReason),
            usage: usageOf(result.usage),
            providerMetadata: metadataOf(result),
          });
        } catch (error) {
          put({ type: 'error', error: failure(error, given) });
        }
        controller.close();
      },
      cancel() { reply.stop(); },
    });
    return { stream, request: { body: given } };
  }
}

class EmbeddingModel extends Face {
  maxEmbeddingsPerCall = MOST_TEXTS;
  supportsParallelCalls = true;

  async doEmbed({ values, dimensions, abortSignal: signal, providerOptions }) {
    const { vectors, tokens, truncated } = await this.model
      .embed(values, { dimensions, signal, ...providerOptions?.[PROVIDER] })
      .catch((error) => {
        throw failure(error, { values });
      });
    const warnings = truncated.map((i) => ({
      type: 'other',
      message: `Text ${i} was longer than the context and lost its end.`,
    }));
    return { embeddings: vectors.map((vector) => Array.from(vector)), usage: { tokens }, warnings };
  }
}

class RerankingModel extends Face {
  async doRerank({ documents: { values }, query, topN, abortSignal: signal, providerOptions }) {
    const texts = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
    const ranks = await this.model.rank(query, texts, { signal, ...providerOptions?.[PROVIDER] }).catch((error) => {
      throw failure(error, { query });
    });
    return {
      ranking: ranks.slice(0, topN ?? ranks.length).map(({ index, score }) => ({ index, relevanceScore: score })),
    };
  }
}

/** Documented in ai-sdk.d.ts. */
export function quern(model, options) {
  const ownName = options?.name ?? (model.info.name || PROVIDER);
  const languageModel = (id = ownName) => new LanguageModel(model, id);
  const embeddingModel = (id = ownName) => new EmbeddingModel(model, id);
  const none = (modelType) => (modelId) => {
    throw sdkError('AI_NoSuchModelError', `quern has no ${modelType}.`, { modelId, modelType });
  };
  return Object.assign((id) => languageModel(id), {
    specificationVersion: 'v3', languageModel, embeddingModel, textEmbeddingModel: embeddingModel,
    rerankingModel: (id = ownName) => new RerankingModel(model, id), imageModel: none('imageModel'),
  });
}

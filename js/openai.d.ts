// SPDX-License-Identifier: MIT

/**
 * The OpenAI API of a model in the same program: for code that is written for that API, and for whatever is built on its client. Nothing is sent anywhere.
 *
 * ```js
 * import { openai } from 'quern/openai';
 * const client = openai(model);
 * const answer = await client.chat.completions.create({ messages: [{ role: 'user', content: 'Hi' }] });
 * ```
 *
 * The official client itself, and LangChain.js over it: `new OpenAI({ apiKey: 'none', fetch: openaiFetch(model), dangerouslyAllowBrowser: true })`.
 * What is taken, ignored and refused is what `quern serve` takes, ignores and refuses.
 */

import type { Model } from './index.js';

/** Of {@link Model}, what is used: a loaded one, a remote one, a fake one. */
export type Answering = Pick<Model, 'chat'> & { readonly info: { readonly name: string } } & Partial<Pick<Model, 'complete' | 'embed'>>;

export interface FaceOptions {
  /** The model's name in answers. Default: the file's, or `quern`. What a request names is not looked at. */
  name?: string | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Chunks of an answer, read once; `break` ends the work, as `controller.abort()` does. */
export interface Stream<Chunk> extends AsyncIterable<Chunk> {
  readonly controller: AbortController;
  /** Each chunk as a line of JSON. */
  toReadableStream(): ReadableStream<Uint8Array>;
}

type Answer<Body, Whole, Chunk> = Promise<Body extends { stream: true } ? Stream<Chunk> : Whole>;

/** Messages, tools, response_format and the rest as the API has them. */
export interface ChatBody {
  messages: readonly object[];
  stream?: boolean | null | undefined;
}

export interface CompletionBody {
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  stream?: boolean | null | undefined;
}

export interface EmbeddingBody {
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  dimensions?: number | null | undefined;
  encoding_format?: 'float' | 'base64' | null | undefined;
  /** What the texts are queries for. */
  instruction?: string | null | undefined;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs: { token: string; logprob: number; bytes: number[] | null }[];
}

export interface ChatLogprobs {
  content: TokenLogprob[] | null;
  refusal: null;
}

interface Head<Kind extends string> {
  id: string;
  object: Kind;
  created: number;
  model: string;
  system_fingerprint?: string;
}

export interface FunctionCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface ChatCompletion extends Head<'chat.completion'> {
  choices: {
    index: number;
    message: { role: 'assistant'; content: string | null; reasoning_content?: string; tool_calls?: FunctionCall[]; refusal: null };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls';
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionChunk extends Head<'chat.completion.chunk'> {
  choices: {
    index: number;
    delta: {
      role?: 'assistant'; content?: string; reasoning_content?: string;
      tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[];
    };
    logprobs?: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls' | null;
  }[];
  /** With `stream_options: { include_usage: true }`: null, but in a last chunk without choices. */
  usage?: CompletionUsage | null;
}

export interface TextCompletion extends Head<'text_completion'> {
  choices: {
    index: number;
    text: string;
    logprobs: { tokens?: string[]; token_logprobs?: number[]; top_logprobs?: Record<string, number>[]; text_offset?: number[] } | null;
    finish_reason: 'stop' | 'length';
  }[];
  usage?: CompletionUsage;
}

export interface EmbeddingList {
  object: 'list';
  /** With `encoding_format: 'base64'` a text of little-endian float32. */
  data: { object: 'embedding'; index: number; embedding: number[] }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

export interface Ranking {
  object: 'list';
  model: string;
  results: { index: number; relevance_score: number; document?: { text: string } }[];
}

export interface ModelObject {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
}

export interface OpenAIFace {
  chat: {
    completions: {
      create<const Body extends ChatBody>(body: Body, options?: CallOptions): Answer<Body, ChatCompletion, ChatCompletionChunk>;
    };
  };
  completions: {
    create<const Body extends CompletionBody>(body: Body, options?: CallOptions): Answer<Body, TextCompletion, TextCompletion>;
  };
  embeddings: {
    create<const Body extends EmbeddingBody>(body: Body, options?: CallOptions): Promise<EmbeddingList>;
  };
  /** As Jina, vLLM and llama-server have it: `{ query, documents, top_n, return_documents, instruction }`. */
  rerank(body: { query: string; documents: readonly string[]; top_n?: number; return_documents?: boolean; instruction?: string }, options?: CallOptions): Promise<Ranking>;
  models: { list(): Promise<{ object: 'list'; data: ModelObject[] }>; retrieve(id?: string): Promise<ModelObject> };
}

/** What is refused, and what fails, rejects with {@link APIError}; an aborted signal with its reason. */
export function openai(model: Answering, options?: FaceOptions | null): OpenAIFace;

/** Answers requests to an API's paths, whatever host and prefix they name: `/chat/completions`, `/completions`, `/embeddings`, `/rerank`, `/models`. */
export function openaiFetch(model: Answering, options?: FaceOptions | null): typeof globalThis.fetch;

/** With the fields that errors of the official client have. `cause`: the model's own, a `QuernError`. */
export class APIError extends Error {
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly param: string | null;
  readonly error: { message: string; type: string; param: string | null; code: string };
}

export { QuernError } from './index.js';

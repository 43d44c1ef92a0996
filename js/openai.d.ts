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
export type Answering = Pick<Model, 'chat'> & { readonly info: { readonly name: string } } & Partial<Pick<Model, 'complete' | 'detokenize' | 'embed'>>;

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
  /** Of the completion's tokens, those of thinking. */
  completion_tokens_details?: { reasoning_tokens?: number };
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

/** Of a tool of the type `custom`: what it is given is a text. */
export interface CustomCall {
  id: string;
  type: 'custom';
  custom: { name: string; input: string };
}

export interface ChatCompletion extends Head<'chat.completion'> {
  choices: {
    index: number;
    message: {
      role: 'assistant'; content: string | null; reasoning_content?: string; refusal: null;
      /** With `length` the last one's arguments may be cut off. */
      tool_calls?: (FunctionCall | CustomCall)[];
      /** Where the request has `functions`. */
      function_call?: { name: string; arguments: string };
    };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls' | 'function_call';
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionChunk extends Head<'chat.completion.chunk'> {
  choices: {
    index: number;
    delta: {
      role?: 'assistant'; content?: string; reasoning_content?: string;
      /** A call of a custom tool has the type `custom`, which the official client's types of chunks do not know, and `custom` in place of `function`. */
      tool_calls?: {
        index: number; id?: string; type?: 'function';
        function?: { name?: string; arguments?: string }; custom?: { name?: string; input?: string };
      }[];
      function_call?: { name?: string; arguments?: string };
    };
    logprobs?: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls' | 'function_call' | null;
  }[];
  /** With `stream_options: { include_usage: true }`: null, but in a last chunk without choices. */
  usage?: CompletionUsage | null;
}

export interface TextCompletion extends Head<'text_completion'> {
  choices: {
    index: number;
    text: string;
    /** Of each token that was written, and of the one that ended it; with `echo` first of the prompt's, where nothing is known of the first. */
    logprobs: {
      tokens?: string[]; token_logprobs?: (number | null)[]; top_logprobs?: (Record<string, number> | null)[]; text_offset?: number[];
    } | null;
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

/** Messages, calls and their results, and reasoning; `instructions`, `tools`, `text.format` and the rest as the API has them. */
export interface ResponseBody {
  input?: string | readonly object[];
  /** Continues from a stored response of this object; a response with `store: false` is not stored. */
  previous_response_id?: string | null;
  stream?: boolean | null;
}

export type ResponseItem =
  | { id: string; type: 'message'; role: 'assistant'; status: 'in_progress' | 'completed' | 'incomplete';
    content: { type: 'output_text'; text: string; annotations: []; logprobs: TokenLogprob[] }[] }
  | { id: string; type: 'reasoning'; status: 'in_progress' | 'completed' | 'incomplete'; encrypted_content: string | null;
    summary: { type: 'summary_text'; text: string }[]; content?: { type: 'reasoning_text'; text: string }[] }
  | { id: string; type: 'function_call'; status: 'in_progress' | 'completed' | 'incomplete'; call_id: string; name: string; arguments: string }
  | { id: string; type: 'custom_tool_call'; status: 'in_progress' | 'completed' | 'incomplete'; call_id: string; name: string; input: string };

export interface ResponseObject {
  id: string;
  object: 'response';
  created_at: number;
  completed_at: number | null;
  status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';
  error: { code: 'server_error' | 'rate_limit_exceeded'; message: string } | null;
  incomplete_details: { reason: 'max_output_tokens' } | null;
  model: string;
  output: ResponseItem[];
  previous_response_id: string | null;
  usage: null | {
    input_tokens: number; input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
    output_tokens: number; output_tokens_details: { reasoning_tokens: number }; total_tokens: number;
  };
}

/** One of the API's events, in their order: `response.created`, `response.output_text.delta`, … */
export interface ResponseEvent {
  type: string;
  sequence_number: number;
  response?: ResponseObject;
  item?: ResponseItem;
  output_index?: number;
  delta?: string;
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
  /** At most 1,000 responses, of 16 million letters together, are stored, for this object only. */
  responses: {
    create<const Body extends ResponseBody>(body: Body, options?: CallOptions): Answer<Body, ResponseObject, ResponseEvent>;
    retrieve(id: string): Promise<ResponseObject>;
    delete(id: string): Promise<{ id: string; object: 'response'; deleted: true }>;
    /** One with `background: true`. */
    cancel(id: string): Promise<ResponseObject>;
    inputItems: { list(id: string, query?: Record<string, string>): Promise<{ object: 'list'; data: object[]; has_more: boolean }> };
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

/**
 * Answers requests to an API's paths, whatever host and prefix they name: `/chat/completions`, `/responses`, `/completions`, `/embeddings`, `/rerank`,
 * `/models`.
 */
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

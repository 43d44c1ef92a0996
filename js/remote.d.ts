// SPDX-License-Identifier: MIT

/**
 * A model behind a server of the OpenAI API (vLLM, `quern serve`, llama-server, ...), for code that is written for a loaded {@link Model}.
 * What is asked goes to that server: this is a module of its own so that nothing does so by the form of a string.
 *
 * ```js
 * import { remote } from 'quern/remote';
 * const model = await remote('https://example.org/v1', { apiKey, model: 'Qwen/Qwen3-8B' });
 * for await (const text of model.chat('Hi')) process.stdout.write(text);
 * ```
 */

import type { CallOptions, ChatOptions, CompleteOptions, EmbedOptions, Given, Message, Reply, Vectors } from './index.js';

export interface RemoteOptions {
  /** Sent as `Authorization: Bearer …`. Never put one into a page: everybody who opens it can read it. */
  apiKey?: string | undefined;
  /** Which of the server's models. Default: the first that it names. */
  model?: string | undefined;
  /** Further headers of every request. */
  headers?: Record<string, string> | Headers | undefined;
  /** Aborts the look at the server. */
  signal?: AbortSignal | undefined;
  /** Milliseconds without a byte of an answer after which a server is given up (`net/stalled`); Infinity: never. Default 300,000. */
  silenceMs?: number | undefined;
}

/** What the server's `/models` says of the model, and two names that {@link Info} has too. */
export interface RemoteInfo {
  readonly name: string;
  /** Positions of a conversation; 0 where the server does not say. */
  readonly contextSize: number;
  readonly [field: string]: unknown;
}

/** What a server can do of {@link Model}. `onPrefill` is not called, sampling that is not given is the server's, `cacheScope` vLLM's `cache_salt`. */
export interface RemoteModel {
  readonly info: RemoteInfo;
  /**
   * Fails with `use/param` (also for what only a loaded model can save: `save`, `overflow`, `logprobs`, `promptLogprobs`, `suffix`, `choices`, `regex`, `grammar`),
   * `use/context`, `use/busy` (the server has too much to do), `net/*`. Thinking is asked for or forbidden only where `thinking` is given; else the server decides. Images go there as `image_url`: addresses as they are, which the server then fetches, files (Blobs) in `data:` addresses. What a
   * page shows, pixels and videos are not taken. `schema` (an object) and `json` go as `response_format`, with tools too: that the text obeys is the server's
   * promise, and `value` is there where it is JSON.
   */
  chat(messages: string | readonly Message[], options?: Given<ChatOptions>): Reply<undefined>;
  /** Continues a text. Token ids are not taken. */
  complete(prompt: string, options?: Given<CompleteOptions>): Reply<undefined>;
  /**
   * Vectors of texts by the server's `/embeddings`, which cuts what is too long or refuses it; `truncated` stays empty. `instruction` goes before each text as
   * Qwen3-Embedding wants it, `normalize` and `cacheScope` cannot be said.
   */
  embed(texts: string | readonly (string | ArrayLike<number>)[], options?: Given<Pick<EmbedOptions, 'instruction' | 'dimensions' | keyof CallOptions>>): Promise<Vectors>;
  /** Not there for a remote model: these reject with `use/param`. */
  rank(...given: unknown[]): Promise<never>;
  tokenize(...given: unknown[]): Promise<never>;
  detokenize(...given: unknown[]): Promise<never>;
  countTokens(...given: unknown[]): Promise<never>;
  logits(...given: unknown[]): Promise<never>;
  look(...given: unknown[]): Promise<never>;
  profile(...given: unknown[]): Promise<never>;
  saved(...given: unknown[]): Promise<never>;
  forget(...given: unknown[]): Promise<never>;
  /** What goes on fails with `engine/disposed`. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Asks a server which models it has. Rejects with `net/*`, `use/param`, or the signal's reason. */
export function remote(url: string | URL, options?: RemoteOptions | null): Promise<RemoteModel>;

export { QuernError } from './index.js';

// SPDX-License-Identifier: MIT

/**
 * A model as a provider of the AI SDK (`ai` 6 and 7, specification v3): `generateText`, `streamText` with tools, `Output.object`, `embedMany`, `rerank`. Nothing of
 * the SDK is imported.
 *
 * ```js
 * import { streamText } from 'ai';
 * import { load } from 'quern';
 * import { quern } from 'quern/ai-sdk';
 * const provider = quern(await load(url));
 * const { textStream } = streamText({ model: provider(), prompt: 'Hi' });
 * ```
 *
 * `reasoning` asks for thinking, or not; how much cannot be said. A schema is kept as `chat({ schema })` keeps it; together with tools it is refused
 * (`use/param`), as `Output.object` beside `tools` would be. What is special to quern goes into
 * `providerOptions.quern` (options of `chat`, `embed` and `rank`), and comes in `providerMetadata.quern` (`timings`, `logprobs`, `dropped`).
 */

import type { Model } from './index.js';

/** A language model of the SDK; its types have the fields of what is taken and given. */
export interface QuernLanguageModel {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  doGenerate(options: any): Promise<any>;
  doStream(options: any): Promise<any>;
}

export interface QuernEmbeddingModel {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: number;
  readonly supportsParallelCalls: boolean;
  doEmbed(options: any): Promise<any>;
}

export interface QuernRerankingModel {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  doRerank(options: any): Promise<any>;
}

/** There is one model: an id is but the name that results tell. */
export interface QuernProvider {
  (modelId?: string): QuernLanguageModel;
  readonly specificationVersion: 'v3';
  languageModel(modelId?: string): QuernLanguageModel;
  embeddingModel(modelId?: string): QuernEmbeddingModel;
  textEmbeddingModel(modelId?: string): QuernEmbeddingModel;
  rerankingModel(modelId?: string): QuernRerankingModel;
  /** There are none. */
  imageModel(modelId: string): never;
}

/**
 * Failures that may pass (`use/busy`) are the SDK's `APICallError`, which it asks again after; all others are the model's own, a {@link QuernError}.
 *
 * @param options.name the models' id. Default: the file's name, or `quern`
 */
export function quern(
  model: Pick<Model, 'chat'> & { readonly info: { readonly name: string } } & Partial<Pick<Model, 'embed'>>, options?: { name?: string | undefined },
): QuernProvider;

export { QuernError } from './index.js';

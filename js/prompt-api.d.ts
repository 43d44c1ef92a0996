// SPDX-License-Identifier: MIT

/**
 * The browser's Prompt API over a model: what is written for `LanguageModel` runs with it, in every browser, in workers and in Node.
 *
 * ```js
 * import { languageModel } from 'quern/prompt-api';
 * const LanguageModel = languageModel(await load(source));
 * const session = await LanguageModel.create({ initialPrompts: [{ role: 'system', content: 'Be brief.' }] });
 * for await (const text of session.promptStreaming('Hi')) out.append(text);
 * ```
 *
 * Failures are what the browser has: a TypeError for what makes no sense, a RangeError for a number or a language tag that is none, else DOMExceptions:
 * `NotSupportedError`, `QuotaExceededError` (with `requested` and `quota`), `InvalidStateError` by `destroy()` and for a file that is no image, `SyntaxError`,
 * `OperationError` with a QuernError as its cause, and the signal's reason. What is no list is a text, as in Web IDL: `null` asks 'null', and `[]` an empty text.
 */

import type { ChatOptions, Given, Message, Model, Reply } from './index.js';

export type LanguageModelContent =
  | { type: 'text'; value: string }
  /** A Blob, the bytes of a file, or what a page shows. */
  | { type: 'image'; value: unknown };

export interface LanguageModelMessage {
  /** `system`: the first message of a session alone. */
  role: 'system' | 'user' | 'assistant';
  content: string | readonly LanguageModelContent[];
  /** Of the last message of a prompt, the assistant's: the reply goes on behind it, and a `responseConstraint` judges both together. */
  prefix?: boolean;
}

export type LanguageModelInput = string | readonly LanguageModelMessage[];

export interface LanguageModelExpected {
  type: 'text' | 'image' | 'audio' | 'tool-call' | 'tool-response';
  /** Nothing is refused because of its language, but for what is no language tag (RangeError). */
  languages?: readonly string[];
}

export interface LanguageModelTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments, of the type `object`. */
  inputSchema: object;
  /** The calls of a reply are carried out at the same time; what it throws the model is told. */
  execute(args: any): unknown;
}

export type LanguageModelSamplingMode =
  'most-predictable' | 'predictable' | 'slightly-predictable' | 'balanced' | 'slightly-creative' | 'creative' | 'most-creative';

export interface LanguageModelOptions {
  /** Kinds of content besides text. `image` needs a model with vision; no model hears. */
  expectedInputs?: readonly LanguageModelExpected[];
  expectedOutputs?: readonly LanguageModelExpected[];
  /** How free the model is. Default: `balanced`, which is what the model's file or card advises. */
  samplingMode?: LanguageModelSamplingMode;
  /** Instead of a mode, as in extensions: 0 to 2 and 1 to 1,000; more is as much as that. */
  temperature?: number;
  topK?: number;
}

export interface LanguageModelCreateOptions extends LanguageModelOptions {
  initialPrompts?: readonly LanguageModelMessage[];
  tools?: readonly LanguageModelTool[];
  /** Ends the making of the session and later the session itself. */
  signal?: AbortSignal;
  /** Its target has `downloadprogress` with `loaded` 0 and 1: the model is there already. */
  monitor?: (target: EventTarget) => void;
}

export interface LanguageModelPromptOptions {
  /** A JSON Schema or an expression: the reply is held to it; of a session with tools the last one, behind its calls. */
  responseConstraint?: object | RegExp;
  /** Whether the model is not told of the constraint, which otherwise stands behind the question. Default: false. */
  omitResponseConstraintInput?: boolean;
  /** What was asked in vain does not stay in the conversation. */
  signal?: AbortSignal;
}

export interface LanguageModelSession extends EventTarget {
  /** Tokens of the conversation, and how many there may be. */
  readonly contextUsage: number;
  readonly contextWindow: number;
  /** Earlier names of these. */
  readonly inputUsage: number;
  readonly inputQuota: number;
  /** null: there are numbers instead. */
  readonly samplingMode: LanguageModelSamplingMode | null;
  readonly temperature: number | undefined;
  readonly topK: number | undefined;
  /** The oldest turns were left out to make room; what the session began with stays. */
  oncontextoverflow: ((event: Event) => void) | null;
  onquotaoverflow: ((event: Event) => void) | null;
  prompt(input: LanguageModelInput, options?: LanguageModelPromptOptions): Promise<string>;
  /** Throws what is over already: after `destroy()`, and by a signal that has aborted. */
  promptStreaming(input: LanguageModelInput, options?: LanguageModelPromptOptions): ReadableStream<string>;
  /** Adds messages that need no reply. */
  append(input: LanguageModelInput, options?: { signal?: AbortSignal }): Promise<void>;
  /** Tokens that an input would add. */
  measureContextUsage(input: LanguageModelInput, options?: LanguageModelPromptOptions): Promise<number>;
  measureInputUsage(input: LanguageModelInput, options?: LanguageModelPromptOptions): Promise<number>;
  /** The same conversation once more, after what is under way. */
  clone(options?: { signal?: AbortSignal }): Promise<LanguageModelSession>;
  /** Ends replies, and refuses new ones (`InvalidStateError`); the model stays. */
  destroy(): void;
}

export interface LanguageModelClass {
  availability(options?: LanguageModelOptions): Promise<'available' | 'unavailable'>;
  /** What numbers there may be. */
  params(): Promise<{ defaultTopK: number; maxTopK: number; defaultTemperature: number; maxTemperature: number }>;
  create(options?: LanguageModelCreateOptions): Promise<LanguageModelSession>;
}

/** `use/param`: this is no model. */
export function languageModel(model: {
  info: Pick<Model['info'], 'contextSize' | 'vision'> & Partial<Pick<Model['info'], 'sampling'>>;
  chat(messages: string | readonly Message[], options?: Given<ChatOptions>): Reply;
  countTokens: Model['countTokens'];
}): LanguageModelClass;

export { QuernError } from './index.js';

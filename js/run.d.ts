// SPDX-License-Identifier: MIT

/**
 * Carries out what a model calls: each reply that calls tools is followed by their results and the next reply, until one calls none. Works with a loaded
 * model and a remote one; a module of its own, because the engine itself never runs anything.
 *
 * ```js
 * import { run } from 'quern/run';
 * const tools = {
 *   weather: {
 *     description: 'The weather of a city',
 *     parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
 *     execute: async ({ city }) => (await fetch(`/weather?city=${encodeURIComponent(city)}`)).json(),
 *   },
 * };
 * for await (const text of run(model, 'Do I need a coat in Oslo?', { tools })) out.append(text);
 * ```
 */

import type { ChatOptions, FromSchema, Given, Message, Part, Reply, ReplyEvent, Result } from './index.js';

/** What a tool's function is given: of the type that its schema says, where that stands in the call or is `as const`; else anything. */
export type ArgumentsOf<Parameters> = unknown extends FromSchema<Parameters> ? any : FromSchema<Parameters>;

export interface RunTool<Parameters = any> {
  description?: string | undefined;
  /** JSON Schema of the arguments, or a `StandardSchema` (Zod and others): `execute` gets what that makes of them, and what it has against them the model is told. */
  parameters?: Parameters;
  /** The same by the name that others have for it; a tool has one of them. */
  inputSchema?: Parameters;
  /**
   * What the call does, with arguments that the model has written: trust them as little as a stranger's. What it returns is the result: a text as it is,
   * a list of {@link Part}s with an image or a video as such (for models with vision), anything else as JSON. What it throws the model is told
   * ("Error: ..."), and goes on. The calls of one reply are carried out at the same time.
   */
  execute(args: ArgumentsOf<Parameters>, call: { id: string; name: string; signal: AbortSignal }): unknown;
}

/** The same tool, with the arguments of its function inferred where it does not stand in the call of {@link run} (before TypeScript 7 there too). */
export function tool<const Parameters>(given: RunTool<Parameters>): RunTool<Parameters>;

export interface RunOptions<Tools = Record<string, any>> extends Omit<ChatOptions, 'tools' | 'continue'> {
  /** The tools by their names. */
  tools: { readonly [Name in keyof Tools]: RunTool<Tools[Name]> };
  /** Replies at most, 1 to 100. Default 8. The calls of the last one are not carried out; `finishReason` then is `tool-calls`. */
  maxSteps?: number | undefined;
}

/** Beside the events of all replies, whose calls are counted through: what a call has given. */
export interface ToolResultEvent {
  type: 'tool-result';
  text: '';
  index: number;
  id: string;
  name: string;
  content: string;
  /** What `execute` has returned, if there is an image or a video in it; `content` then has the texts. */
  parts?: readonly Part[];
  /** Whether `execute` has failed. */
  isError: boolean;
}

/** The last reply's. */
export interface RunResult extends Result {
  /** Replies that were made, and the sums of their usages. */
  steps: number;
  totalUsage: Result['usage'];
  /** What to add to the conversation: replies with their calls, results, and the last reply. */
  messages: Message[];
}

export interface RunReply extends Omit<Reply, 'events' | 'result'> {
  readonly events: AsyncIterable<ReplyEvent | ToolResultEvent>;
  readonly result: Promise<RunResult>;
}

/** What `toolChoice` demands the first reply has to do, what it forbids none may; all other options count for each. `stop()` and `signal` end what is carried out, too. */
export function run<const Tools>(
  model: { chat(messages: string | readonly Message[], options?: Given<ChatOptions>): Reply }, messages: string | readonly Message[], options: RunOptions<Tools>,
): RunReply;

export { QuernError } from './index.js';

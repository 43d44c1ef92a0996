// SPDX-License-Identifier: MIT

/**
 * A model for tests of what is built on one: it answers what a script says, without wasm, a file or a download. What it is asked is checked as the real one
 * checks it, and its replies have the same events in the same order.
 *
 * ```js
 * import { fakeModel } from 'quern/testing';
 * const model = fakeModel(['Hello!', { toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] }, 'Take a coat.']);
 * await answer(model, 'Hi');
 * assert.equal(model.calls[0].input[0].content, 'Hi');
 * ```
 */

import type { Info, Message, Model, ToolCall } from './index.js';

/** One reply. A text stands for `{ text }`, an error for `{ error }`. */
export interface FakeAnswer {
  text?: string | undefined;
  thinking?: string | undefined;
  /** Of tools that are given; ids are made up where there are none. */
  toolCalls?: readonly { id?: string | undefined; name: string; arguments?: ToolCall['arguments'] | undefined }[] | undefined;
  /** Default: `tool-calls` behind calls, else `stop`; `maxTokens`, stop texts and `stop()` end a reply as they do a real one. */
  finishReason?: 'stop' | 'tool-calls' | 'length' | 'context' | undefined;
  /** Fails the reply behind what it has said. */
  error?: Error | undefined;
  /** Milliseconds before each word. Default 0: words follow each other without a timer. */
  pauseMs?: number | undefined;
}

/** A call of `chat` or `complete`, `embed` or `rank`, as it was checked: messages as a list, options without those that are null. */
export interface FakeCall {
  kind: 'chat' | 'complete' | 'embed' | 'rank';
  input: any;
  options: any;
}

export interface FakeModel extends Model {
  readonly calls: FakeCall[];
}

type Answer = string | Error | FakeAnswer;

/**
 * `script`: the answer to everything; a list of answers, one for each call of `chat` and `complete`, of which there must be enough; or a function that makes
 * them. A token is a word with the space before it. A whole answer must be one that a real model could give: of the `choices`, matched by the `regex`, JSON with `schema` and `json` (nothing else looks at it), and with the calls that `toolChoice` wants; a script
 * that says otherwise fails the reply with a `TypeError`. What a real model refuses is refused, but for schemas and grammars that cannot be honoured, which only the engine knows.
 * Vectors are near each other where texts share words, ranks are shares of the query's words; `logits` are all 0.
 *
 * @param info facts that {@link Info} is to have; the others are a small model's
 */
export function fakeModel(script?: Answer | readonly Answer[] | ((call: FakeCall & { input: Message[] | string }) => Answer | Promise<Answer>), info?: Partial<Info>): FakeModel;

export { QuernError } from './index.js';

// SPDX-License-Identifier: MIT
// Anthropic's POST /messages: makes a message of blocks (thinking, text, uses of tools), and the events for each block.

import { messagesRequest } from './messages-request.js';
import { Turn } from './turn.js';
import { randomId } from '../shared/random-id.js';

const REASONS = {
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  context: 'model_context_window_exceeded',
  aborted: 'max_tokens',
};

/** Clients send thinking back only if it is signed; the signature is not checked here. */
const SIGNATURE = 'quern';

/** Blocks by the kind of event: how one begins, grows and ends. */
const BLOCKS = {
  text: {
    begin: () => ({ type: 'text', text: '' }), delta: ({ text }) => ({ type: 'text_delta', text }),
    take: (block, { text }) => { block.text += text; },
  },
  thinking: {
    begin: () => ({ type: 'thinking', thinking: '', signature: '' }),
    delta: ({ text }) => ({ type: 'thinking_delta', thinking: text }),
    take: (block, { text }) => {
      block.thinking += text;
    },
    last: { type: 'signature_delta', signature: SIGNATURE },
    end: (block) => ({ ...block, signature: SIGNATURE }),
  },
  call: {
    begin: ({ id, name }) => ({ type: 'tool_use', id, name, input: {} }),
    delta: ({ delta }) => ({ type: 'input_json_delta', partial_json: delta }),
    take: () => {},
  },
};

/** The block that an event belongs to, and whether the event begins or ends it. */
const EVENTS = {
  text: { kind: 'text' },
  thinking: { kind: 'thinking' },
  'tool-call-start': { kind: 'call', isFirst: true },
  'tool-call-delta': { kind: 'call' },
  'tool-call': { kind: 'call', isLast: true },
};

const usageOf = ({ promptTokens, cachedTokens, completionTokens = 0 }) => ({
  input_tokens: promptTokens - cachedTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cachedTokens,
  output_tokens: completionTokens,
});

/** A message in progress; see turn.js. */
class Message {
  #now;
  #open = null;       // the block in progress, with its kind

  constructor(model) {
    const id = `msg_${randomId()}`;
    this.#now = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null };
  }

  * begin(known) {
    yield { type: 'message_start', message: { ...this.#now, content: [], usage: usageOf(known) } };
  }

  * event(event) {
    const { kind, isFirst, isLast } = EVENTS[event.type] ?? {};
    if (!kind) return;
    if (isFirst || this.#open?.kind !== kind) {
      if (isLast) return;
      yield* this.#close();
      yield* this.#begin(kind, event);
    }
    if (isLast) {
      this.#open.block.input = event.arguments;
      yield* this.#close();
    } else if (!isFirst) {
      BLOCKS[kind].take(this.#open.block, event);
      yield { type: 'content_block_delta', index: this.#now.content.length, delta: BLOCKS[kind].delta(event) };
    }
  }

  * end({ finishReason, stopText, usage }) {
    yield* this.#close();
    const reason = REASONS[finishReason] ?? (stopText ? 'stop_sequence' : 'end_turn');
    Object.assign(this.#now, { stop_reason: reason, stop_sequence: stopText ?? null, usage: usageOf(usage) });
    yield {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: stopText ?? null },
      usage: this.#now.usage,
    };
    yield { type: 'message_stop' };
  }

  whole() { return this.#now; }

  * #begin(kind, event) {
    const block = BLOCKS[kind].begin(event);
    this.#open = { kind, block };
    yield { type: 'content_block_start', index: this.#now.content.length, content_block: { ...block } };
  }

  * #close() {
    if (!this.#open) return;
    const { kind, block } = this.#open;
    const { last, end = (whole) => whole } = BLOCKS[kind];
    const index = this.#now.content.length;
    if (last) yield { type: 'content_block_delta', index, delta: last };
    yield { type: 'content_block_stop', index };
    this.#now.content.push(end(block));
    this.#open = null;
  }
}

/**
 * Starts a request of POST /messages.
 * @param {Pick<import('../index.d.ts').Model, 'chat'>} model
 * @param {any} body parsed JSON
 * @param {{name: string}} identity
 */
export function message(model, body, { name }) {
  const { messages, options, stream } = messagesRequest(body);
  return new Turn((begun) => model.chat(messages, { ...options, ...begun }), new Message(name), stream);
}

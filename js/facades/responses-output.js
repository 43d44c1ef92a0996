// SPDX-License-Identifier: MIT
// The output of a response in progress: its items (reasoning, a message, a call), and the events for each item in the
// order that clients expect: an item is added, its parts come and end, it is done.

import { InputText } from './openai-custom.js';
import { wordOf } from './openai-limits.js';
import { sealed } from './responses-items.js';
import { randomId } from '../shared/random-id.js';

const textPart = (text, logprobs) => ({ type: 'output_text', text, annotations: [], logprobs });

class Message {
  id = `msg_${randomId()}`;
  #text = '';
  #logprobs = [];

  item(status, isNew) {
    const content = isNew ? [] : [textPart(this.#text, this.#logprobs)];
    return { id: this.id, type: 'message', status, role: 'assistant', content };
  }

  begin() { return [{ type: 'response.content_part.added', content_index: 0, part: textPart('', []) }]; }

  take({ text, logprobs: given = [] }) {
    const logprobs = given.map((one) => ({ ...wordOf(one), top_logprobs: one.top.map(wordOf) }));
    this.#text += text;
    this.#logprobs.push(...logprobs);
    return { type: 'response.output_text.delta', content_index: 0, delta: text, logprobs };
  }

  end() {
    return [
      { type: 'response.output_text.done', content_index: 0, text: this.#text, logprobs: this.#logprobs },
      { type: 'response.content_part.done', content_index: 0, part: textPart(this.#text, this.#logprobs) },
    ];
  }
}

/** Thinking, reported as itself, or as its summary if one was requested: the model writes no other. */
class Reasoning {
  id = `rs_${randomId()}`;
  #text = '';
  #isSummary;
  #isSealed;
  #place;

  constructor({ summary, sealed }) {
    this.#isSummary = summary;
    this.#isSealed = sealed;
    this.#place = summary ? { summary_index: 0 } : { content_index: 0 };
  }

  #part() { return { type: this.#isSummary ? 'summary_text' : 'reasoning_text', text: this.#text }; }

  item(status, isNew) {
    const parts = isNew ? [] : [this.#part()];
    const said = this.#isSummary ? { summary: parts } : { summary: [], content: parts };
    return {
      id: this.id,
      type: 'reasoning',
      status,
      ...said,
      encrypted_content: this.#isSealed && !isNew ? sealed(this.#text) : null,
    };
  }

  begin() {
    const type = this.#isSummary ? 'response.reasoning_summary_part.added' : 'response.content_part.added';
    return [{ type, ...this.#place, part: this.#part() }];
  }

  take({ text }) {
    this.#text += text;
    return { type: `response.reasoning_${this.#isSummary ? 'summary_' : ''}text.delta`, ...this.#place, delta: text };
  }

  end() {
    const part = this.#isSummary ? 'response.reasoning_summary_part.done' : 'response.content_part.done';
    return [
      { type: `response.reasoning_${this.#isSummary ? 'summary_' : ''}text.done`, ...this.#place, text: this.#text },
      { type: part, ...this.#place, part: this.#part() },
    ];
  }
}

class Call {
  id = `fc_${randomId()}`;
  #text = '';
  #call;

  constructor(how, { id, name }) {
    this.#call = { call_id: id, name };
  }

  item(status) { return { id: this.id, type: 'function_call', status, ...this.#call, arguments: this.#text }; }

  begin() { return []; }

  take({ delta }) {
    this.#text += delta;
    return { type: 'response.function_call_arguments.delta', delta };
  }

  end() { return [{ type: 'response.function_call_arguments.done', name: this.#call.name, arguments: this.#text }]; }
}

/** A call of a custom tool, whose input is a text. */
class CustomCall {
  id = `ctc_${randomId()}`;
  #input = new InputText();
  #text = '';
  #call;

  constructor(how, { id, name }) {
    this.#call = { call_id: id, name };
  }

  item(status) { return { id: this.id, type: 'custom_tool_call', status, ...this.#call, input: this.#text }; }

  begin() { return []; }

  take({ delta }) {
    const piece = this.#input.take(delta);
    this.#text += piece;
    return piece ? { type: 'response.custom_tool_call_input.delta', delta: piece } : null;
  }

  end() { return [{ type: 'response.custom_tool_call_input.done', input: this.#text }]; }
}

const KINDS = { text: Message, thinking: Reasoning, call: Call };

/** The kind of item that each event belongs to, and whether the event begins or ends it. */
const EVENTS = {
  text: { kind: 'text' },
  thinking: { kind: 'thinking' },
  'tool-call-start': { kind: 'call', isFirst: true },
  'tool-call-delta': { kind: 'call' },
  'tool-call': { kind: 'call', isLast: true },
};

export class Output {
  #how;
  #open = null;
  #kind = '';
  #done = [];

  /**
   * @param {{summary: boolean, sealed: boolean, customs: Set<string>}} how summary: whether thinking is reported as its
   *   summary; sealed: whether also in an encoded form that clients send back; customs: names of custom tools
   */
  constructor(how) {
    this.#how = how;
  }

  /** Items so far. */
  get items() { return this.#open ? [...this.#done, this.#open.item('in_progress')] : this.#done; }

  /** @param {any} event of a reply @returns {Iterable<object>} events of the response */
  * take(event) {
    const { kind, isFirst, isLast } = EVENTS[event.type] ?? {};
    if (!kind) return;
    if (isFirst || this.#kind !== kind) {
      if (isLast) return;
      yield* this.close(this.#kind === 'call' ? 'incomplete' : 'completed');
      yield* this.#begin(kind, event);
    }
    if (isLast) yield* this.close('completed');
    else if (!isFirst) yield* this.#grow(event);
  }

  * #grow(event) {
    const told = this.#open.take(event);
    if (told) yield this.#placed(told);
  }

  /** Ends the open item. @param {'completed' | 'incomplete'} status of the item */
  * close(status) {
    if (!this.#open) return;
    for (const event of this.#open.end()) yield this.#placed(event);
    const item = this.#open.item(status);
    yield { type: 'response.output_item.done', output_index: this.#done.length, item };
    this.#done.push(item);
    this.#open = null;
    this.#kind = '';
  }

  * #begin(kind, event) {
    const Kind = kind === 'call' && this.#how.customs.has(event.name) ? CustomCall : KINDS[kind];
    const item = new Kind(this.#how, event);
    this.#open = item;
    this.#kind = kind;
    yield { type: 'response.output_item.added', output_index: this.#done.length, item: item.item('in_progress', true) };
    for (const event of item.begin()) yield this.#placed(event);
  }

  #placed({ type, ...event }) { return { type, item_id: this.#open.id, output_index: this.#done.length, ...event }; }
}

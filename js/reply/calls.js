// SPDX-License-Identifier: MIT
// A call of a tool in a reply: told while it is written, as soon as it is known whose it is, and checked when it has
// ended. What is no call then (no JSON, another name, too many) is text, with its marks; what the reply's end has cut
// off is kept apart. Models write calls in forms of their own: each is a row of FORMS.

import { isObject, isRecord } from '../shared/kinds.js';
import { randomId } from '../shared/random-id.js';
import { parsed } from '../shared/raw-json.js';
import { TaggedCall } from './tagged.js';

/** Calls of a reply, and depth of what one says: what goes back in the next turn may not have more. */
export const MOST_CALLS = 128;
export const MOST_DEPTH = 64;

export const isDeep = (value, most) => (
  isObject(value) && (most === 0 || Object.values(value).some((one) => isDeep(one, most - 1))));

/**
 * The beginning of a call in JSON, up to its arguments: where it is no longer than this it is found at once, else in
 * the end.
 */
const HEAD = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)/;
const MOST_HEAD = 1000;

/** Where an object that begins a text ends: a machine that is given pieces. */
class ObjectEnd {
  isOver = false;
  #depth = 0;
  #isText = false;
  #escaped = false;

  /** @returns {number} of these letters how many are the object's */
  take(text) {
    let at = 0;
    while (at < text.length && this.#goesOn(text[at++]));
    return at;
  }

  #goesOn(letter) {
    if (this.#escaped) this.#escaped = false;
    else if (this.#isText) {
      this.#escaped = letter === '\\';
      this.#isText = letter !== '"';
    } else if (letter === '"') this.#isText = true;
    else if (letter === '{' || letter === '[') this.#depth++;
    else if (letter === '}' || letter === ']') this.isOver = --this.#depth === 0;
    return !this.isOver;
  }
}

/** `{"name": NAME, "arguments": OBJECT}`, as Qwen3 and Qwen2.5 write it. */
class JsonCall {
  #text = '';
  #name;              // once it is known
  #given = '';        // the arguments as they were written
  #end = new ObjectEnd();

  /**
   * @param {string} piece
   * @returns {{name?: string, text: string}} what it tells: whose call this is, and a piece of its arguments
   */
  take(piece) {
    this.#text += piece;
    if (this.#name !== undefined) return { text: this.#add(piece) };
    const [head, name] = (this.#text.length - piece.length < MOST_HEAD && HEAD.exec(this.#text)) || [];
    if (!head) return { text: '' };
    this.#name = parsed(name);
    return { name: this.#name, text: this.#add(this.#text.slice(head.length)) };
  }

  /**
   * All that was written, the call that it is, and what was not told of its arguments.
   * @returns {{text: string, call?: {name: string, arguments: object}, left?: string}}
   */
  end() {
    const text = this.#text;
    const { name, arguments: given } = parsed(text) ?? {};
    if (typeof name !== 'string' || !isRecord(given)) return { text };
    if (this.#name === undefined) return { text, call: { name, arguments: given } };
    return this.#name === name && this.#end.isOver
      ? { text, call: { name, arguments: parsed(this.#given) } }
      : { text };
  }

  #add(piece) {
    if (this.#end.isOver) return '';
    const part = piece.slice(0, this.#end.take(piece));
    this.#given += part;
    return part;
  }
}

/**
 * How calls are marked and written: between the marks stand what names the tool, its arguments by its schema
 * (`grammar`: a kind of grammar.js), and the end. `gap`: what stands between a text and a call. `oddName`: what no name
 * may have. Models of an architecture write the form that info.callForm names, unless the template shows another one.
 */
export const FORMS = {
  tagged: {
    open: '<tool_call>',
    close: '</tool_call>',
    gap: '\n\n',
    before: (name) => `\n<function=${name}>\n`,
    after: '</function>\n',
    oddName: '>',
    grammar: 'taggedCalls',
    Call: TaggedCall,
    isShown: (template) => ['<tool_call>', '<function=', '<parameter='].every((mark) => template.includes(mark)),
  },
  json: {
    open: '<tool_call>',
    close: '</tool_call>',
    gap: '\n',
    before: (name) => `\n{"name": ${JSON.stringify(name)}, "arguments": `,
    after: '}\n',
    grammar: 'calls',
    Call: JsonCall,
    isShown: () => false,
  },
};

/** @param {string} template '': there is none @param {{callForm: string}} facts @returns {typeof FORMS.json} */
export const formOf = (template, { callForm }) =>
  Object.values(FORMS).find(({ isShown }) => isShown(template)) ?? FORMS[callForm];

/** The calls of one reply; see Aside in text.js. */
export class Calls {
  #form;
  #tools;
  #emit;
  #parts;             // of the result
  #calls;             // that have ended, as they are there
  #index = 0;         // of those that were told
  #one;

  /**
   * @param {typeof FORMS.json} form
   * @param {Map<string, {parameters: object}>} tools that there are, by their names
   * @param {(event: object) => void} emit
   * @param {{toolCalls: object[], unfinishedCall?: object}} parts of the result, to which each is added
   */
  constructor(form, tools, emit, parts) {
    this.#form = form;
    this.#tools = tools;
    this.#emit = emit;
    this.#parts = parts;
    this.#calls = parts.toolCalls;
  }

  /** @returns {this} for the next one */
  begin() {
    this.#one = { call: new this.#form.Call((name) => this.#tools.get(name)?.parameters), id: '', name: '', text: '' };
    return this;
  }

  push(piece) {
    const { name, text } = this.#one.call.take(piece);
    if (name !== undefined && this.#tools.has(name) && this.#calls.length < MOST_CALLS) this.#start(name);
    if (text && this.#one.id) this.#tell(text);
    return '';
  }

  end(closed) {
    if (!closed) return this.#cutOff();
    const { text, call, left } = this.#one.call.end();
    const isCall =
      call && this.#tools.has(call.name) && this.#calls.length < MOST_CALLS && !isDeep(call.arguments, MOST_DEPTH);
    if (!isCall) return this.#form.open + text + this.#form.close;
    if (!this.#one.id) {
      this.#start(call.name);
      this.#tell(JSON.stringify(call.arguments));
    } else if (left) this.#tell(left);
    const whole = { id: this.#one.id, ...call };
    this.#calls.push(whole);
    this.#emit({ type: 'tool-call', index: this.#index - 1, ...whole });
    return '';
  }

  /** What is there of it; neither id nor name where it was cut off before them. */
  #cutOff() {
    const { id, name, text } = this.#one;
    this.#parts.unfinishedCall = { id, name, text };
    return '';
  }

  #tell(text) {
    this.#one.text += text;
    this.#emit({ type: 'tool-call-delta', index: this.#index - 1, delta: text });
  }

  #start(name) {
    Object.assign(this.#one, { id: `call_${randomId()}`, name });
    this.#emit({ type: 'tool-call-start', index: this.#index++, id: this.#one.id, name });
  }
}

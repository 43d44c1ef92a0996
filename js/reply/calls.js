// SPDX-License-Identifier: MIT
// Calls of tools in a reply. A call is reported while it is written, as soon as the tool's name is known, and checked
// when it has ended. If it turns out to be no valid call (no JSON, an unknown name, too many calls), it becomes text,
// with its marks. A call that the reply's end cuts off is kept as `unfinishedCall`. Each form in which models write
// calls is a row of FORMS.

import { isObject, isRecord } from '../shared/kinds.js';
import { randomId } from '../shared/random-id.js';
import { parsed } from '../shared/raw-json.js';
import { JSON_SPELLING, PARAMETERS_SPELLING, TAGGED_SPELLING } from './spelled.js';
import { TaggedCall } from './tagged.js';

/** Most calls of a reply, and most depth of a call's arguments. The limits match those of messages in the next turn. */
export const MOST_CALLS = 128;
export const MOST_DEPTH = 64;

export const isDeep = (value, most) => (
  isObject(value) && (most === 0 || Object.values(value).some((one) => isDeep(one, most - 1))));

/**
 * The beginning of a call in JSON, up to its arguments under this key. It is recognised at once if it has at most
 * MOST_HEAD letters, else at the end.
 */
const headWith = (key) => new RegExp(`^\\s*\\{\\s*"name"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")\\s*,\\s*"${key}"\\s*:\\s*(?=\\{)`);
const MOST_HEAD = 1000;

/** Finds the end of the JSON object that a text begins with; the text comes in pieces. */
class ObjectEnd {
  isOver = false;
  #depth = 0;
  #isText = false;
  #escaped = false;

  /** @returns {number} number of these letters that belong to the object */
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
  /** The key of the arguments. */
  static key = 'arguments';
  static head = headWith('arguments');
  #text = '';
  #name;              // known once the head has matched
  #given = '';        // the arguments as written so far
  #end = new ObjectEnd();

  /**
   * @param {string} piece
   * @returns {{name?: string, text: string}} the tool's name once it is known, and a piece of the arguments
   */
  take(piece) {
    this.#text += piece;
    if (this.#name !== undefined) return { text: this.#add(piece) };
    const [head, name] = (this.#text.length - piece.length < MOST_HEAD && this.#kind.head.exec(this.#text)) || [];
    if (!head) return { text: '' };
    this.#name = parsed(name);
    return { name: this.#name, text: this.#add(this.#text.slice(head.length)) };
  }

  /**
   * Returns the whole text, the call in it, and the part of its arguments that take() did not return.
   * @returns {{text: string, call?: {name: string, arguments: object}, left?: string}}
   */
  end() {
    const text = this.#text;
    const { name, [this.#kind.key]: given } = parsed(text) ?? {};
    if (typeof name !== 'string' || !isRecord(given)) return { text };
    if (this.#name === undefined) return { text, call: { name, arguments: given } };
    return this.#name === name && this.#end.isOver
      ? { text, call: { name, arguments: parsed(this.#given) } }
      : { text };
  }

  /** Whether arguments have begun and not ended. */
  get isOpen() { return this.#name !== undefined && !this.#end.isOver; }

  get #kind() { return /** @type {typeof JsonCall} */ (this.constructor); }

  #add(piece) {
    if (this.#end.isOver) return '';
    const part = piece.slice(0, this.#end.take(piece));
    this.#given += part;
    return part;
  }
}

/** `{"name": NAME, "parameters": OBJECT}`, as Llama 3 writes it. */
class ParametersCall extends JsonCall {
  static key = 'parameters';
  static head = headWith('parameters');
}

/**
 * Forms of calls. `open`, `close`: the marks; a form without marks is a whole reply that begins like `bare`. `before`
 * and `after`: the text around the arguments. `gap`: the text between a reply's text and a call. `oddName`: a letter
 * that names must not contain. `grammar`: a kind of grammar.js. `Call` reads a call, `spelling` writes it where there
 * is no template (spelled.js).
 * A model writes the form that info.callForm names, unless its template shows another one.
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
    spelling: TAGGED_SPELLING,
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
    spelling: JSON_SPELLING,
    /* of models whose own form has no marks */
    isShown: (template, own) => own.bare && ['<tool_call>', 'arguments'].every((mark) => template.includes(mark)),
  },
  parameters: {
    open: '',
    close: '',
    bare: '{"name":',
    gap: '',
    before: (name) => `{"name": ${JSON.stringify(name)}, "parameters": `,
    after: '}',
    grammar: 'calls',
    Call: ParametersCall,
    spelling: PARAMETERS_SPELLING,
    isShown: () => false,
  },
};

/** @param {string} template '' if there is none @param {{callForm: string}} facts @returns {typeof FORMS.json} */
export const formOf = (template, { callForm }) =>
  Object.values(FORMS).find(({ isShown }) => isShown(template, FORMS[callForm])) ?? FORMS[callForm];

/** The calls of one reply: an Aside of text.js. */
export class Calls {
  #form;
  #tools;
  #emit;
  #parts;             // parts of the result
  #calls;             // calls that have ended; they are part of the result
  #index = 0;         // number of calls that were reported
  #one;

  /**
   * @param {typeof FORMS.json} form
   * @param {Map<string, {parameters: object}>} tools by name
   * @param {(event: object) => void} emit
   * @param {{toolCalls: object[], unfinishedCall?: object}} parts of the result; calls are added here
   */
  constructor(form, tools, emit, parts) {
    this.#form = form;
    this.#tools = tools;
    this.#emit = emit;
    this.#parts = parts;
    this.#calls = parts.toolCalls;
  }

  /** Begins the next call. @returns {this} */
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
    const { bare } = this.#form;
    if (bare ? this.#one.call.isOpen : !closed) return this.#cutOff();
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

  /** Keeps a call that was cut off. Its id and name are empty if the name was not complete. */
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

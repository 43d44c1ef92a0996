// SPDX-License-Identifier: MIT
// A call whose arguments stand between tags, as the templates of Qwen3-Coder and Qwen3.5 have them: <function=NAME>,
// for each argument <parameter=KEY>, a line end, the value, a line end, </parameter>, and </function>. It is told as
// the JSON of its arguments, while it is written.
//
// A value is a text, whose meaning the tool's schema says: where only a string can be, it is that string; else what it
// is as JSON, if the schema allows that, and Python's None, True and False, which templates write into histories; else
// the text. src/grammar/schema/tagged.c holds replies to texts that mean what the schema allows.

import { isObject, isRecord } from '../shared/kinds.js';
import { parsed } from '../shared/raw-json.js';

// --- which types a parameter may have ---

const TYPES = { null: 1, boolean: 2, number: 4, integer: 4, string: 8, array: 16, object: 32 };
const ANY = 63;

/** Schemas that are looked at for one parameter; where there are more, it may be anything. */
const MOST_SCHEMAS = 256;

const typeOf = (value) => TYPES[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value];

const union = (list) => list.reduce((all, one) => all | one, 0);

/** What a reference within the tool's own schema leads to; undefined: elsewhere. */
function target(root, reference) {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined;
  const steps = reference.slice(1).split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce((value, step) => (isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined), root);
}

/** Types that a schema leaves: what it says itself, as `own` reads it, and what schemas say that it is made of. */
function left(schema, own, look) {
  if (!isRecord(schema) || look.left-- <= 0) return schema === false ? 0 : ANY;
  const each = (list) => (Array.isArray(list) ? list.map((one) => left(one, own, look)) : [ANY]);
  const { $ref, allOf = [], anyOf = [true], oneOf = [true] } = schema;
  const referred = $ref === undefined ? ANY : left(target(look.root, $ref), own, look);
  return each(allOf).reduce((all, one) => all & one, own(schema) & referred & union(each(anyOf)) & union(each(oneOf)));
}

function ownTypes({ type, const: value, enum: values }) {
  const named = type === undefined ? ANY : union([type].flat().map((name) => TYPES[name] ?? ANY));
  return (
    named & (value === undefined ? ANY : typeOf(value)) & (Array.isArray(values) ? union(values.map(typeOf)) : ANY)
  );
}

/**
 * @param {object | undefined} parameters of a tool
 * @param {string} key
 * @returns {number} a bit for each type that may be there
 */
function typesOf(parameters, key) {
  const look = { root: parameters, left: MOST_SCHEMAS };
  const ofMember = ({ properties, patternProperties, additionalProperties }) => {
    if (isRecord(properties) && Object.hasOwn(properties, key)) return left(properties[key], ownTypes, look);
    return patternProperties === undefined ? left(additionalProperties, ownTypes, look) : ANY;
  };
  return left(parameters, ofMember, look) || ANY;
}

// --- what a text means ---

const WORDS = { None: 'null', True: 'true', False: 'false' };

const WORD = /^[ \t\r\n]*(None|True|False)[ \t\r\n]*$/;

/** The JSON of a value. */
function jsonOf(text, types) {
  const json = WORDS[WORD.exec(text)?.[1]] ?? text;
  const value = parsed(json);
  if (value === undefined) return JSON.stringify(text);
  const isMeant =
    typeof value === 'string' ? !(types & TYPES.string) : types & typeOf(value) || !(types & TYPES.string);
  return isMeant ? json.trim() : JSON.stringify(text);
}

// --- reading ---

const NAMED = /^<function=([^>\n]*)>/;
const KEYED = /^<parameter=([^>\n]*)>/;
const OVER = '</function>';
const END = '</parameter>';
const HALF = /[\ud800-\udbff]$/;

/** Letters of a tag: one that is longer is none. */
const MOST_TAG = 1000;

const inner = (text) => JSON.stringify(text).slice(1, -1);

export class TaggedCall {
  #parametersOf;
  #text = '';
  #rest = '';             // that has not been understood
  #step = this.#head;     // what comes next; null: nothing that belongs to a call
  #name;
  #given = '';            // the arguments as JSON, but for what is told at the moment
  #told = '';
  #keys = 0;
  #types;                 // of the argument at hand
  #value;                 // of it, where it has to be whole; undefined: it is told as it comes
  #end;                   // what ends it; undefined: it has not begun
  #skip = 0;              // letters that are none of it: the line end behind its tag

  /** @param {(name: string) => object | undefined} parametersOf a tool: their schema */
  constructor(parametersOf) {
    this.#parametersOf = parametersOf;
  }

  /**
   * @param {string} piece
   * @returns {{name?: string, text: string}} what it tells: whose call this is, and a piece of its arguments
   */
  take(piece) {
    this.#text += piece;
    this.#rest += piece;
    const isNew = this.#name === undefined;
    while (this.#step?.());
    const text = this.#told;
    this.#given += text;
    this.#told = '';
    return isNew && this.#name !== undefined ? { name: this.#name, text } : { text };
  }

  /** All that was written, the call that it is, and what was not told of its arguments. */
  end() {
    const isOpen = this.#step === this.#between;      // </function> is missing, which models forget
    if ((this.#step !== this.#behind && !isOpen) || this.#rest.trim()) return { text: this.#text };
    const left = isOpen ? '}' : '';
    return { text: this.#text, call: { name: this.#name, arguments: parsed(this.#given + left) }, left };
  }

  /** What a tag names, once it is there; '' is a name. */
  #tag(pattern) {
    this.#rest = this.#rest.trimStart();
    const [tag, name] = pattern.exec(this.#rest) ?? [];
    if (tag !== undefined) this.#rest = this.#rest.slice(tag.length);
    else if (this.#rest.length > MOST_TAG) this.#step = null;
    return name;
  }

  #head() {
    this.#name = this.#tag(NAMED);
    if (this.#name === undefined) return false;
    this.#told += '{';
    this.#step = this.#between;
    return true;
  }

  #between() {
    this.#rest = this.#rest.trimStart();
    if (this.#rest.startsWith(OVER)) {
      this.#rest = this.#rest.slice(OVER.length);
      this.#told += '}';
      this.#step = this.#behind;
      return true;
    }
    const key = this.#tag(KEYED);
    if (key === undefined) return false;
    this.#types = typesOf(this.#parametersOf(this.#name), key);
    this.#value = this.#types === TYPES.string ? undefined : '';
    this.#told += `${this.#keys++ ? ', ' : ''}${JSON.stringify(key)}: ${this.#value === undefined ? '"' : ''}`;
    this.#end = undefined;
    this.#step = this.#argument;
    return true;
  }

  /** Where a value begins with a line end, that and the one before its end are none of it. */
  #argument() {
    if (this.#rest === '') return false;
    if (this.#end === undefined) {
      this.#skip = this.#rest[0] === '\n' ? 1 : 0;
      this.#end = this.#skip ? `\n${END}` : END;
    }
    const at = this.#rest.indexOf(this.#end);
    if (at < 0) return this.#tellSome();
    const text = this.#rest.slice(this.#skip, at);
    this.#tell(this.#end === END ? text.replace(/\n$/, '') : text);
    this.#told += this.#value === undefined ? '"' : jsonOf(this.#value, this.#types);
    this.#rest = this.#rest.slice(at + this.#end.length);
    this.#step = this.#between;
    return true;
  }

  /** What surely is of the value: not what its end may begin with, nor half a letter. */
  #tellSome() {
    let cut = this.#rest.length - this.#end.length;
    if (cut > this.#skip && HALF.test(this.#rest.slice(this.#skip, cut))) cut--;
    if (cut <= this.#skip) return false;
    this.#tell(this.#rest.slice(this.#skip, cut));
    this.#rest = this.#rest.slice(cut);
    this.#skip = 0;
    return false;
  }

  #tell(text) {
    if (this.#value === undefined) this.#told += inner(text);
    else this.#value += text;
  }

  #behind() { return false; }
}

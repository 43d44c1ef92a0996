// SPDX-License-Identifier: MIT
// A call whose arguments stand between tags, as in the templates of Qwen3-Coder and Qwen3.5: <function=NAME>, then for
// each argument <parameter=KEY>, a newline, the value, a newline, </parameter>, and at the end </function>. While it is
// written, it is reported as the JSON of its arguments.
//
// A value is the text up to the next </parameter>, and the tool's schema decides its meaning. If only a string is
// possible, the text is that string. Otherwise the text is read as JSON, or as Python's None, True or False, which
// templates write into histories, if the schema allows the result. Any other text is a string.
// src/grammar/schema/tagged.c keeps replies to texts whose meaning the schema allows.

import { isObject, isRecord } from '../shared/kinds.js';
import { parsed } from '../shared/raw-json.js';

// --- which types a parameter may have ---

const TYPES = { null: 1, boolean: 2, number: 4, integer: 4, string: 8, array: 16, object: 32 };
const ANY = 63;

/** Most schemas that are read for one parameter; beyond that, any type is assumed. */
const MOST_SCHEMAS = 256;

const typeOf = (value) => TYPES[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value];

const union = (list) => list.reduce((all, one) => all | one, 0);

/** The target of a reference within the tool's own schema; undefined: it points elsewhere. */
function target(root, reference) {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined;
  const steps = reference.slice(1).split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce((value, step) => (isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined), root);
}

/** Types that a schema allows: by its own keywords, as `own` reads them, and by the schemas that it combines. */
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
 * @returns {number} one bit for each type that the parameter may have
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

/** The JSON of a value's text. */
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

/** Most letters of a tag; a longer one is not a tag. */
const MOST_TAG = 1000;

const inner = (text) => JSON.stringify(text).slice(1, -1);

export class TaggedCall {
  #parametersOf;
  #text = '';
  #rest = '';             // not read yet
  #step = this.#head;     // reads the next part; null: the text is no call
  #name;
  #given = '';            // JSON of the arguments, without #told
  #told = '';             // JSON that the present take() returns
  #keys = 0;
  #types;                 // types of the present argument
  #value;                 // its text, if the JSON depends on the whole text; undefined: a string, reported as it comes
  #begins = false;        // whether a newline may follow that is not part of it

  /** @param {(name: string) => object | undefined} parametersOf returns a tool's schema */
  constructor(parametersOf) {
    this.#parametersOf = parametersOf;
  }

  /**
   * @param {string} piece
   * @returns {{name?: string, text: string}} the tool's name once it is known, and a piece of the arguments' JSON
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

  /** Returns the whole text, the call in it, and the part of its arguments' JSON that take() did not return. */
  end() {
    const isOpen = this.#step === this.#between;      // </function> is missing, which models forget
    if ((this.#step !== this.#behind && !isOpen) || this.#rest.trim()) return { text: this.#text };
    const left = isOpen ? '}' : '';
    return { text: this.#text, call: { name: this.#name, arguments: parsed(this.#given + left) }, left };
  }

  /** Reads a tag and returns its name, which may be ''; undefined: the tag is not complete. */
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
    this.#begins = true;
    this.#step = this.#argument;
    return true;
  }

  /** Reads a value. One newline at its beginning and one at its end are not part of it. */
  #argument() {
    if (this.#rest === '') return false;
    if (this.#begins && this.#rest[0] === '\n') this.#rest = this.#rest.slice(1);
    this.#begins = false;
    const at = this.#rest.indexOf(END);
    if (at < 0) return this.#tellSome();
    this.#tell(this.#rest.slice(0, at).replace(/\n$/, ''));
    this.#told += this.#value === undefined ? '"' : jsonOf(this.#value, this.#types);
    this.#rest = this.#rest.slice(at + END.length);
    this.#step = this.#between;
    return true;
  }

  /**
   * Reports the part that surely belongs to the value: without a possible beginning of the end, with the newline before
   * it, and without half a character.
   */
  #tellSome() {
    let cut = this.#rest.length - END.length;
    if (cut > 0 && HALF.test(this.#rest.slice(0, cut))) cut--;
    if (cut <= 0) return false;
    this.#tell(this.#rest.slice(0, cut));
    this.#rest = this.#rest.slice(cut);
    return false;
  }

  #tell(text) {
    if (this.#value === undefined) this.#told += inner(text);
    else this.#value += text;
  }

  #behind() { return false; }
}

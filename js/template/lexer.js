// SPDX-License-Identifier: MIT
// Splits a template into tokens, and removes white space around tags as jinja2 does with trim_blocks and lstrip_blocks.
// The text between two tags is one token.

import { isSpace } from './letters.js';
import { TemplateError } from './meter.js';

/**
 * @typedef {object} Token
 * @property {string} type 'data', 'variable', 'block', 'end' (of a tag), 'name', 'string', 'int', 'float', 'over', or
 *   an operator
 * @property {string} text
 */

const SPACE = /[\s\x1c-\x1f\x85]*/y;
/** A float, an int, a name or an operator; after a point there is no float. */
const TOKEN = new RegExp([
  /(?<!\.)((?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))/,
  /(0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)/,
  /([\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}]*)/u, /\/\/|\*\*|[=!><]=|[-+/*%~[\](){}<>=.:|,;]/u,
].map(({ source }) => source).join('|'), 'uy');
const TYPES = ['float', 'int', 'name'];
const RAW = /\{%[-+]?[\s\x1c-\x1f\x85]*raw[\s\x1c-\x1f\x85]*(-?)%\}/y;
const END_RAW = /\{%([-+]?)[\s\x1c-\x1f\x85]*endraw[\s\x1c-\x1f\x85]*([-+]?)%\}/g;
const END_COMMENT = /([-+]?)#\}/g;
const END_BLOCK = /([-+]?)%\}/y;
const END_VARIABLE = /(-?)\}\}/y;

const CLOSING = { '{': '}', '(': ')', '[': ']' };

/** The longest template of a model has 2,400. */
const MOST_TOKENS = 2 ** 16;

/** Removes white space at the end letter by letter: a pattern would search from every position. */
function trimEnd(text) {
  let end = text.length;
  while (end > 0 && isSpace(text[end - 1])) end--;
  return text.slice(0, end);
}

class Lexer {
  tokens = [];
  #source;
  #at = 0;
  #startsLine = true;     // the last token ended a line

  constructor(source) {
    this.#source = source.replace(/\r\n?/g, '\n').replace(/\n$/, '');
  }

  read() {
    while (this.#at < this.#source.length) this.#textAndTag();
    this.#add('over', '');
    return this.tokens;
  }

  #add(type, text) {
    if (this.tokens.push({ type, text }) > MOST_TOKENS) throw new TemplateError('it is too large');
  }

  #match(pattern) {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source);
  }

  /** Continues after the end of a tag: '-' removes white space; without a sign, one line end is removed if `trims`. */
  #leave(end, sign, trims) {
    this.#at = end;
    if (sign === '-') this.#at += this.#match(SPACE)[0].length;
    else if (trims && !sign && this.#source[end] === '\n') this.#at++;
    this.#startsLine = this.#source[this.#at - 1] === '\n';
  }

  /** Adds the text before a tag with this sign; white space at the beginning of the line of a block is removed. */
  #data(text, sign, isBlock) {
    let kept = text;
    if (sign === '-') kept = trimEnd(text);
    else if (sign !== '+' && isBlock) {
      const line = text.lastIndexOf('\n') + 1;
      if ((line > 0 || this.#startsLine) && !trimEnd(text.slice(line))) kept = text.slice(0, line);
    }
    if (kept) this.#add('data', kept);
  }

  #textAndTag() {
    const from = this.#at;
    let start = this.#source.indexOf('{', from);
    while (start >= 0 && !'{%#'.includes(this.#source[start + 1] || ' ')) start = this.#source.indexOf('{', start + 1);
    if (start < 0) {
      this.#add('data', this.#source.slice(from));
      this.#at = this.#source.length;
      return;
    }
    const kind = this.#source[start + 1];
    const sign = '-+'.includes(this.#source[start + 2] || ' ') ? this.#source[start + 2] : '';
    this.#data(this.#source.slice(from, start), sign, kind !== '{');
    this.#at = start;
    const raw = kind === '%' && this.#match(RAW);
    if (raw) this.#raw(raw);
    else if (kind === '#') this.#comment(start + 2 + sign.length);
    else {
      this.#at = start + 2 + sign.length;
      this.#tag(kind === '%');
    }
  }

  #raw([all, sign]) {
    this.#leave(this.#at + all.length, sign, false);
    const found = this.#match(END_RAW);
    if (!found) return this.#endless('A raw block');
    this.#data(this.#source.slice(this.#at, found.index), found[1], true);
    return this.#leave(found.index + found[0].length, found[2], true);
  }

  #comment(from) {
    this.#at = from;
    const found = this.#match(END_COMMENT);
    if (!found) return this.#endless('A comment');
    return this.#leave(found.index + found[0].length, found[1], true);
  }

  /** jinja2 reports no error if a template ends with the opening mark. */
  #endless(what) {
    if (this.#at < this.#source.length) throw new TemplateError(`${what} does not end`);
  }

  #tag(isBlock) {
    const brackets = [];
    this.#add(isBlock ? 'block' : 'variable', '');
    while (this.#at < this.#source.length) {
      const end = !brackets.length && this.#match(isBlock ? END_BLOCK : END_VARIABLE);
      if (end) {
        this.#leave(this.#at + end[0].length, end[1], isBlock);
        this.#add('end', isBlock ? '%}' : '}}');
        return;
      }
      this.#token(brackets);
    }
  }

  #token(brackets) {
    const space = this.#match(SPACE)[0].length;
    this.#at += space;
    if (space || this.#string()) return;
    const [text, ...kinds] = this.#match(TOKEN) ?? [];
    if (!text) throw new TemplateError(`'${this.#source[this.#at]}' has no meaning in a tag`);
    const type = TYPES[kinds.findIndex(Boolean)];
    if (!type) this.#balance(text, brackets);
    this.#add(type ?? text, text);
    this.#at += text.length;
  }

  #string() {
    const quote = this.#source[this.#at];
    if (quote !== '"' && quote !== "'") return false;
    let end = this.#at + 1;
    while (end < this.#source.length && this.#source[end] !== quote) end += this.#source[end] === '\\' ? 2 : 1;
    if (end >= this.#source.length) throw new TemplateError('A string does not end');
    this.#add('string', this.#source.slice(this.#at + 1, end));
    this.#at = end + 1;
    return true;
  }

  #balance(operator, brackets) {
    if (CLOSING[operator]) brackets.push(CLOSING[operator]);
    else if (')]}'.includes(operator) && brackets.pop() !== operator)
      throw new TemplateError(`'${operator}' has no opening bracket`);
  }
}

/** @param {string} source @returns {Token[]} */
export const tokensOf = (source) => new Lexer(source).read();

const SIMPLE = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\n': '',
};
const ESCAPE = /\\(?:([ntr\\'"abfv\n])|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})|([xuUN]))/g;

/** Decodes the escapes of a template's string. */
export function unescaped(text) {
  return text.replace(ESCAPE, (_, simple, x, u, U, octal, wrong) => {
    if (wrong || parseInt(U, 16) > 0x10ffff) throw new TemplateError('An escape in a string is wrong');
    return simple ? SIMPLE[simple] : String.fromCodePoint(octal ? parseInt(octal, 8) : parseInt(x ?? u ?? U, 16));
  });
}

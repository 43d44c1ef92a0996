// SPDX-License-Identifier: MIT
// text.format(values), with format specifications. A part of template-rare.js.

import { attribute, item } from './lookup.js';
import { converted, putLetter, putNumber, putText, spec } from './places.js';
import { str } from './repr.js';
import { fail } from './texts.js';
import { Dict, asNumber, isNumber, isText, textOf, typeName } from './values.js';

const SPEC = /^(?:([^])?([<>=^]))?([-+ ])?(z)?(#)?(0)?(\d*)([,_])?(?:\.(\d+))?([a-zA-Z%])?$/u;

/** Types of floats. */
const REALS = 'eEfFgG%';

/** Whether a specification is valid for a value. */
function fits({ type, group, sign, alternate, positive, precision, align }, v) {
  const isReal = typeof v === 'number' || REALS.includes(type || ' ');
  const types = isText(v) ? 's' : typeof v === 'number' ? 'eEfFgGn%' : 'bcdoxXneEfFgG%';
  if (!types.includes(type)) return false;
  if (group && (isText(v) || (type && (group === ',' ? 'cnboxX' : 'cn').includes(type)))) return false;
  if (type === 'c' && (sign || alternate)) return false;
  if (isText(v)) return !sign && !positive && !alternate && align !== '=';
  return isReal || (precision < 0 && !positive);
}

function specOf(text, v) {
  const [all, fill, align, sign, z, hash, zero, width, group, precision, type] = SPEC.exec(text) ?? [];
  const usual = isText(v) ? '<' : '>';
  const isZero = zero && fill === undefined;
  const s = spec({
    fill: fill ?? (isZero ? '0' : ' '),
    align: align ?? (isZero && usual === '>' ? '=' : usual),
    sign: sign ?? '',
    positive: Boolean(z),
    alternate: Boolean(hash),
    width: Number(width),
    group: group ?? '',
    precision: precision === undefined ? -1 : Number(precision),
    type: type ?? '',
  });
  if (all === undefined || !(isText(v) || isNumber(v)) || !fits(s, v))
    fail(`a format is wrong for a value of the type '${typeName(v)}'`);
  return { ...s, sign: s.sign === '-' ? '' : s.sign };
}

function putValue(meter, v, text) {
  if (!text) return str(meter, v);
  const s = specOf(text, v);
  if (isText(v)) return putText(meter, s, textOf(v));
  if (s.type === 'c') return putLetter(meter, s, asNumber(v));
  const isFloat = typeof v === 'number';
  const type = s.type === 'n' ? (isFloat ? 'g' : 'd') : s.type;
  return putNumber(meter, { ...s, type }, asNumber(v), isFloat || REALS.includes(s.type || ' '));
}

/** The number in a field that has only digits. */
const numberIn = (name) => (/^\d+$/.test(name) ? Number(name) : undefined);

class Braces {
  #next = 0;              // index of the next field without a number; -1: fields are numbered

  constructor(meter, given, named) {
    Object.assign(this, { meter, given, named });
  }

  #first(name, isWhole) {
    let n = numberIn(name);
    if (isWhole ? name === '' || n !== undefined : false) {
      if (n === undefined ? this.#next < 0 : this.#next > 0) fail('numbered and unnumbered places are mixed');
      if (n === undefined) n = this.#next++;
      else this.#next = -1;
    }
    const v = n === undefined ? this.named?.get(name) : this.given[n];
    return v === undefined ? fail('a value of the format is not given') : v;
  }

  #value(field) {
    const [head] = /^[^.[]*/.exec(field);
    let v = this.#first(head, head === field);
    for (let at = head.length; at < field.length;) {
      const isItem = field[at] === '[';
      const found = (isItem ? /\[([^\]]+)\]/y : /\.([^.[]+)/y);
      found.lastIndex = at;
      const [all, name] = found.exec(field) ?? fail('a field of the format is wrong');
      at += all.length;
      const n = isItem ? numberIn(name) : undefined;
      v = isItem ? item(this.meter, v, n === undefined ? name : BigInt(n)) : attribute(this.meter, v, name);
    }
    return v;
  }

  /** The end of a field that begins at `from`: the colon of its specification, or its brace. */
  #fieldEnd(text, from) {
    let at = from;
    while (at < text.length && !'{}:!'.includes(text[at]))
      at = text[at] === '[' ? text.indexOf(']', at) + 1 || text.length : at + 1;
    return at;
  }

  #specEnd(text, from) {
    let at = from;
    for (let deep = 1; deep; at++) {
      if (at >= text.length) fail('a } is missing in the format');
      deep += { '{': 1, '}': -1 }[text[at]] ?? 0;
    }
    return at;
  }

  #field(text, from, nested) {
    let at = this.#fieldEnd(text, from);
    this.meter.count(at - from);
    const name = text.slice(from, at);
    let conversion = '';
    let format = '';
    if (text[at] === '!') {
      conversion = text[at + 1] ?? '';
      at += 2;
    }
    if (text[at] === ':') {
      const end = this.#specEnd(text, at + 1);
      format = text.slice(at + 1, end - 1);
      at = end - 1;
    }
    if (text[at] !== '}') fail('a } is missing in the format');
    const v = this.#value(name);
    if (conversion && !'sra'.includes(conversion)) fail('a conversion of the format is unknown');
    const shown = conversion ? converted(this.meter, v, conversion) : v;
    return { text: putValue(this.meter, shown, this.fill(format, nested - 1)), end: at + 1 };
  }

  /** Fills in the values. Calls itself for fields in a specification, at most twice. */
  fill(text, nested = 2) {
    if (nested < 0) fail('a format is nested too deep');
    this.meter.count(text.length >> 4);
    const out = [];
    let at = 0;
    for (let place = nextBrace(text, 0); place >= 0; place = nextBrace(text, at)) {
      this.meter.count(4);
      out.push(text.slice(at, place));
      if (text[place + 1] === text[place]) {
        out.push(text[place]);
        at = place + 2;
        continue;
      }
      if (text[place] === '}') fail('a single } in the format');
      const field = this.#field(text, place + 1, nested);
      this.meter.count(field.text.length >> 6);
      out.push(field.text);
      at = field.end;
    }
    return out.join('') + text.slice(at);
  }
}

const BRACE = /[{}]/g;

function nextBrace(text, from) {
  BRACE.lastIndex = from;
  return BRACE.test(text) ? BRACE.lastIndex - 1 : -1;
}

/** Returns text.format(*given, **named). @param {any[]} given @param {Dict} [named] */
export const formatBraces = (meter, text, given, named) => new Braces(meter, given, named).fill(text);

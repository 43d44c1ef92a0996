// SPDX-License-Identifier: MIT
// text % values. A part of template-rare.js.

import { converted, put, putLetter, putNumber, putText, spec } from './places.js';
import { fail } from './texts.js';
import { Dict, Range, Tuple, Undefined, asNumber, isInt, isNumber, isText, letterCount, textOf } from './values.js';

const PLACE = /([-+ #0]*)(\*|\d*)(?:(\.)(\*|\d*))?[hlL]?(.?)/suy;

class Percent {
  #text;
  #at = 0;
  #values;
  #left;

  constructor(meter, text, values) {
    this.#text = text;
    this.meter = meter;
    this.#values = values;
    this.#left = values instanceof Tuple ? [...values.items].reverse() : [values];
  }

  all() {
    const out = [];
    this.meter.count(this.#text.length >> 6);
    for (;;) {
      this.meter.count(4);
      const place = this.#text.indexOf('%', this.#at);
      out.push(this.#text.slice(this.#at, place < 0 ? undefined : place));
      if (place < 0) break;
      this.#at = place + 1;
      out.push(this.#place());
    }
    const values = this.#values;
    const mayStay =
      values instanceof Dict || Array.isArray(values) || values instanceof Range || values instanceof Undefined;
    if (this.#left.length && !mayStay) fail('not all values have a place in the text');
    return out.join('');
  }

  #next() { return this.#left.length ? this.#left.pop() : fail('there are not enough values for the text'); }

  #key() {
    const from = ++this.#at;
    for (let deep = 1; deep; this.#at++) {
      this.meter.count(0.25);
      if (this.#at >= this.#text.length) fail('a key in the text does not end');
      deep += { '(': 1, ')': -1 }[this.#text[this.#at]] ?? 0;
    }
    if (!(this.#values instanceof Dict)) fail('the text needs a dict');
    const value = this.#values.get(this.#text.slice(from, this.#at - 1));
    this.#left = [value === undefined ? fail('a key of the text is missing') : value];
  }

  #size(digits) {
    if (digits !== '*') return Number(digits || 0);
    const v = this.#next();
    return isInt(v) ? Number(v) : fail('* needs a whole number');
  }

  #place() {
    if (this.#text[this.#at] === '%') return this.#text[this.#at++];
    if (this.#text[this.#at] === '(') this.#key();
    PLACE.lastIndex = this.#at;
    const [all, flags, width, dot, precision, type] = PLACE.exec(this.#text);
    this.#at += all.length;
    if (!type) fail('a place in the text has no end');
    const sized = this.#size(width);
    const s = spec({
      type, width: Math.abs(sized), align: flags.includes('-') || sized < 0 ? '<' : '>',
      sign: ['+', ' '].find((sign) => flags.includes(sign)) ?? '',
      alternate: flags.includes('#'), ...(dot && { precision: Math.max(0, this.#size(precision)) }),
    });
    if (flags.includes('0') && s.align === '>' && !'sarc'.includes(type)) Object.assign(s, { fill: '0', align: '=' });
    return type === '%' ? '%' : this.#filled(s, this.#next());
  }

  #filled(s, v) {
    const { meter } = this;
    if ('sra'.includes(s.type)) return putText(meter, s, converted(meter, v, s.type));
    if (s.type === 'c' && isText(v) && letterCount(meter, textOf(v)) === 1) return put(meter, s, textOf(v));
    if (s.type === 'c' && isInt(v)) return putLetter(meter, s, asNumber(v));
    if ('eEfFgG'.includes(s.type) && isNumber(v)) return putNumber(meter, s, asNumber(v), true);
    const isDecimal = 'diu'.includes(s.type);
    if (
      !(isDecimal ? isNumber(v) && (typeof v !== 'number' || Number.isFinite(v)) : 'oxX'.includes(s.type) && isInt(v))
    ) {
      fail('a value has the wrong type for its place, or the type of the place is unknown');
    }
    return putNumber(meter, { ...s, least: Math.max(0, s.precision) }, asNumber(v), false);
  }
}

/** Returns text % values. */
export const formatPercent = (meter, text, values) => new Percent(meter, text, values).all();

// SPDX-License-Identifier: MIT
// JSON that stays the text that it is. What a client has written as JSON goes to a chat template so: numbers keep their text (1.0, 1e-5,
// 9223372036854775807) and members their order ("10" before "2"), both of which JavaScript's values lose. All texts here have been parsed once, so
// nothing looks for mistakes again; what walks through them takes time by their length alone, however deep they are.

export const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value of a JSON text; undefined: it is none. @param {string} text */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Stands for a value in what jsonText() and mapTexts() are given. */
export class RawJson {
  /** @param {string} text valid JSON */
  constructor(text) {
    this.text = text;
  }
}

/** JSON of a value, in which texts that stand for values are what they are. @returns {string | undefined} undefined where JSON.stringify() says so */
export function jsonText(value) {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((one) => jsonText(one) ?? 'null').join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, one]) => [JSON.stringify(key), jsonText(one)]);
  return `{${members.filter(([, one]) => one !== undefined).map((member) => member.join(':')).join(',')}}`;
}

// --- walking through a text ---

/** Where a string that begins at a place ends: behind its second quote; 0: it does not. */
export function endOfString(text, at) {
  for (let end = at + 1; ;) {
    end = text.indexOf('"', end);
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    end++;
    if (escapes % 2 === 0) return end;
  }
}

/** A text with its strings, names of members too, made into others, and what stands between them. */
function mapped(text, ofString, ofRest) {
  let out = '';
  for (let at = 0; ;) {
    const begin = text.indexOf('"', at);
    if (begin < 0) return out + ofRest(text.slice(at));
    const end = endOfString(text, begin);
    out += ofRest(text.slice(at, begin)) + ofString(text.slice(begin, end));
    at = end;
  }
}

/** A value as JSON knows them with its texts, names of fields too, made into others. @param {(text: string) => string} make */
export function mapTexts(value, make) {
  if (typeof value === 'string') return make(value);
  if (Array.isArray(value)) return value.map((part) => mapTexts(part, make));
  if (value instanceof RawJson) return new RawJson(mapped(value.text, (text) => JSON.stringify(make(JSON.parse(text))), (rest) => rest));
  return isRecord(value) ? Object.fromEntries(mapTexts(Object.entries(value), make)) : value;
}

/** JSON spaced as Python writes it, and chat templates. */
export const spaced = (json) => mapped(json, (text) => JSON.stringify(JSON.parse(text)),
  (rest) => rest.replace(/[ \t\r\n]+/g, '').replace(/[,:]/g, '$& '));

/** JSON without white space between its parts. */
export const dense = (json) => mapped(json, (text) => text, (rest) => rest.replace(/[ \t\r\n]+/g, ''));

/** What stands between the commas of an array or an object. @param {string} json @returns {string[]} */
export function partsOf(json) {
  const all = [];
  let depth = 0;
  let from = 0;
  const take = (to) => {
    const part = json.slice(from, to).trim();
    if (part) all.push(part);
    from = to + 1;
  };
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (letter === '"') at = endOfString(json, at) - 1;
    else if (letter === '{' || letter === '[') { if (depth++ === 0) from = at + 1; }
    else if (letter === '}' || letter === ']') { if (--depth === 0) take(at); }
    else if (letter === ',' && depth === 1) take(at);
  }
  return all;
}

/** The value of an object's member, as it is written; undefined: there is none. Of several the last one counts. @param {string} json */
export function memberOf(json, name) {
  const found = partsOf(json).findLast((part) => JSON.parse(part.slice(0, endOfString(part, 0))) === name);
  return found?.slice(endOfString(found, 0)).replace(/^[ \t\r\n]*:/, '').trim();
}

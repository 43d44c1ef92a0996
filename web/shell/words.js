// SPDX-License-Identifier: MIT
// The page's words in the language of the visitor. The key of a sentence is the English sentence, with {1}, {2} ... for
// what is put in, so the sources read as the page does, and the English page needs no table: tools/languages.mjs
// collects the keys, and web/languages/ has a table for each other language. A sentence is always whole, because other
// languages have another order. boot.js chooses the language and fetches its table; all modules wait for it here, so
// constants may have words too. A bundle that is fetched late has a copy of this file, and the same table.

const root = globalThis.document?.documentElement ?? { lang: 'en' };

/** @type {?Record<string, string | Record<string, string>>} null: English */
const table = await (globalThis.quernWords ?? null);

/** The language of the page. Its files are named after it. */
export const language = root.lang;

const stem = (tag) => tag.split('-')[0];

/** The visitor's own form of that language, such as de-AT, for numbers and times. */
export const locale = globalThis.navigator?.languages?.find((tag) => stem(tag) === stem(language)) ?? language;

/** Arabic pages have Latin digits too, as model names and units do. */
const DIGITS = { numberingSystem: 'latn' };

const formats = {};

/** Makes a format when it is first needed: the first one takes a browser some 40 ms. So English does without. */
const format = (kind, options) =>
  (formats[kind + JSON.stringify(options)] ??= new Intl[kind](locale, { ...DIGITS, ...options }));

/** 4096 -> "4,096". @param {number} [digits] after the point; else two, as far as they are needed */
export function number(n, digits) {
  const options = { minimumFractionDigits: digits ?? 0, maximumFractionDigits: digits ?? 2 };
  if (table) return format('NumberFormat', options).format(n);
  const [whole, rest] = (digits === undefined ? String(Number(n.toFixed(2))) : n.toFixed(digits)).split('.');
  return [whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ','), ...(rest ? [rest] : [])].join('.');
}

/** 2755328 -> "2.8 million" */
export function large(n) {
  const options = { notation: 'compact', compactDisplay: 'long', maximumFractionDigits: 1 };
  if (table) return format('NumberFormat', options).format(n);
  return n >= 1e9 ? `${number(n / 1e9, 1)} billion` : `${number(n / 1e6, n >= 1e8 ? 0 : 1)} million`;
}

/** @param {Intl.DateTimeFormatOptions} options */
export const moment = (time, options) => format('DateTimeFormat', options).format(time);

/** Phrases side by side, with commas. */
export const list = (...phrases) => {
  const all = phrases.filter(Boolean);
  return table ? format('ListFormat', { type: 'unit' }).format(all) : all.join(', ');
};

/** Whole sentences, one after the other. Chinese and Japanese put no space between them. */
export const joined = (...sentences) => sentences.filter(Boolean).join(/^(?:zh|ja)/.test(language) ? '' : ' ');

/** A name or a number within a sentence from right to left keeps its own direction (FSI ... PDI). */
export const isolated = (text) => (root.dir === 'rtl' ? `\u2068${text}\u2069` : text);

const shown = (value) => isolated(typeof value === 'number' ? number(value) : value);

/** Puts values into their places. A place without a value is text: a sentence may be what somebody has written. */
const filled = (sentence, values) =>
  sentence.replaceAll(/\{(\d)\}/g, (place, at) => (at > 0 && at <= values.length ? shown(values[at - 1]) : place));

/** What the table has for a key; undefined if nothing. */
const entryOf = (sentence) => (table && Object.hasOwn(table, sentence) ? table[sentence] : undefined);

const keyOf = (parts) => parts.reduce((text, part, i) => `${text}{${i}}${part}`);

/** Marks a sentence that is looked up later, by sayOf(), because it is stored or comes from a worker. */
export const key = (sentence) => sentence;

/** What a key says in the page's language; a text that is no key stays as it is. */
export const sayOf = (sentence, ...values) => {
  const said = entryOf(sentence);
  return filled(typeof said === 'string' ? said : sentence, values);
};

/** A template's text in the page's language. Numbers in it are written as people write them. */
export const say = (parts, ...values) => sayOf(keyOf(parts), ...values);

/** The same with nodes put in. @returns {(string | Node)[]} */
export const sayNodes = (parts, ...nodes) => {
  const sentence = keyOf(parts);
  return (entryOf(sentence) ?? sentence).split(/\{(\d)\}/).map((part, i) => (i % 2 ? nodes[part - 1] : part));
};

/**
 * A sentence about a number, which is {1} in it; the values are {2} and more. Each language has its own forms.
 * @param {string} one the English sentence about 1 @param {string} other the English sentence about any other number
 */
export function plural(n, one, other, ...values) {
  const forms = entryOf(other);
  const sentence = forms ? forms[format('PluralRules').select(n)] ?? forms.other : (n === 1 ? one : other);
  return filled(sentence, [n, ...values]);
}

/** The translation of a code of the package's errors; undefined in English, which has the package's own sentences. */
export const wordsOfCode = entryOf;

// SPDX-License-Identifier: MIT
// Python's tests of the letters of a text: isalpha(), islower() and the like. A part of template-rare.js.

import { isLower, isPrintable, isSpace, isUpper } from './letters.js';
import { str } from './repr.js';
import { letters } from './values.js';

const are = (pattern) => (letter) => pattern.test(letter);
/** Tests for ranges and classes of letters in the form of patterns. @param {string[]} parts */
const among = (parts) => are(new RegExp(`^[${parts.join('')}]$`, 'u'));

const isAlpha = are(/^\p{L}$/u);
const isDecimal = are(/^\p{Nd}$/u);
/** Digits, including those that are not part of numbers: superscripts, circled digits and the like. */
const isDigit = among([
  '\\p{Nd}\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490',
  '\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}',
  '\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}',
]);
const isNumeric = among([
  '\\p{N}\\u3405\\u3483\\u382a\\u3b4d\\u4e00\\u4e03\\u4e07\\u4e09\\u4e5d\\u4e8c\\u4e94\\u4e96\\u4ebf-\\u4ec0\\u4edf\\u4ee8\\u4f0d',
  '\\u4f70\\u5104\\u5146\\u5169\\u516b\\u516d\\u5341\\u5343-\\u5345\\u534c\\u53c1-\\u53c4\\u56db\\u58f1\\u58f9\\u5e7a',
  '\\u5efe-\\u5eff\\u5f0c-\\u5f0e\\u5f10\\u62fe\\u634c\\u67d2\\u6f06\\u7396\\u767e\\u8086\\u842c\\u8cae\\u8cb3\\u8d30\\u9621\\u9646',
  '\\u964c\\u9678\\u96f6',
]);
const isTitle = are(/^\p{Lt}$/u);

export const isWordLetter = (letter) => isAlpha(letter) || isDecimal(letter) || isDigit(letter) || isNumeric(letter);

/** Tests that are true for an empty text too. */
const ALSO_EMPTY = { isascii: (letter) => letter < '\x80', isprintable: isPrintable };

const CLASSES = {
  isalpha: isAlpha,
  isdecimal: isDecimal,
  isdigit: isDigit,
  isnumeric: isNumeric,
  isspace: isSpace,
  isalnum: isWordLetter,
  ...ALSO_EMPTY,
};

/** Whether all letters with a case have the right one, and there is at least one. */
function hasCase(text, how) {
  let [isCased, isInside] = [false, false];
  for (const letter of text) {
    const [lower, upper, title] = [isLower(letter), isUpper(letter), isTitle(letter)];
    if (how === 'islower' ? upper || title : how === 'isupper' ? lower || title : isInside ? upper || title : lower)
      return false;
    isInside = lower || upper || title;
    isCased ||= isInside;
  }
  return isCased;
}

export function runClass(meter, [v], how) {
  const text = str(meter, v);
  meter.count(text.length * (how in CLASSES ? 1 : 2));
  if (!CLASSES[how]) return hasCase(text, how);
  return text ? letters(meter, text).every(CLASSES[how]) : how in ALSO_EMPTY;
}

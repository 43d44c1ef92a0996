// SPDX-License-Identifier: MIT
// Random patterns against JavaScript's own RegExp, in the module of grammars as the package has it: what is not refused matches the same texts, and no
// text is taken for a pattern that is none.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { Grammars } from '../../../js/engine/grammar.js';
import { BYTES } from '../../fixtures/byte-tokens.mjs';
import { maskOf, stateAfter } from '../../fixtures/whole.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { random } from '../../fixtures/random.mjs';
import { CATEGORIES, PROPERTIES, SCRIPTS } from '../../../tools/unicode-names.mjs';

const COUNT = length(600, 20_000);
const TEXTS = 16;
const MOST_LETTERS = 14;      // of a text: V8 goes back through each way in which a pattern may match it

let grammars;
before(async () => { grammars = await Grammars.open(new WebAssembly.Module(readFileSync(new URL('../../../dist/grammar.wasm', import.meta.url))), /** @type {any} */ (BYTES)); });

/** Whether a text is all that a pattern describes; null: the pattern is refused. */
async function ours(pattern, flags) {
  let grammar;
  try {
    grammar = await grammars.compile('regex', pattern, flags);
  } catch (error) {
    assert.equal(error.code, 'use/schema', `${pattern}: ${error.stack}`);
    return error;
  }
  grammar.users--;
  return (text) => {
    let state = grammar.start;
    for (const byte of new TextEncoder().encode(text)) {
      if (!(maskOf(grammar, state)[byte >>> 5] >>> (byte & 31) & 1)) return false;
      state = stateAfter(grammar, state, byte);
    }
    return grammar.accepts(state);
  };
}

function theirs(pattern, flags) {
  try {
    new RegExp(pattern, flags);      // without what is put around it
    const whole = new RegExp(`(?:${pattern})(?![^])`, `${flags}y`);      // with the flag m, ^ and $ around it would be a line's
    return { test: (text) => ((whole.lastIndex = 0), whole.test(text)) };
  } catch {
    return null;
  }
}

const LETTERS = [...'aAbBbc01_- .]}{,/"\\\n\r\t\u2028é\u017fsSßŁ\u1e9eΣσςK\u212a\u00a0中😀\u{10ffff}\u{1d7d9}'];

const HAS_MODIFIERS = theirs('(?i:a)', 'u') !== null;

/** Patterns, each with texts that it may describe. */
class Patterns {
  #random;

  constructor(seed) { this.#random = random(seed); }

  below(n) { return Math.floor(this.#random() * n); }
  of(list) { return list[this.below(list.length)]; }
  letter() { return this.of(LETTERS); }

  text() { return Array.from({ length: this.below(7) }, () => this.letter()).join(''); }

  /** A code point as a pattern says it, anywhere or in brackets. */
  said(letter, inside) {
    const code = letter.codePointAt(0);
    if (this.below(4) === 0) return code < 256 && this.below(2) ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
    if (this.below(8) === 0) return Array.from({ length: letter.length }, (_, i) => `\\u${letter.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
    return (inside ? /[\]\\^-]/ : /[\^$\\.*+?()[\]{}|/]/).test(letter) ? `\\${letter}` : letter;
  }

  class() {
    const items = Array.from({ length: this.below(4) }, () => {
      if (this.below(4) === 0) return this.of(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '\\p{L}', '\\P{N}', '\\p{Lu}', '\\P{Ll}', '\\p{Sc}', '\\p{Script=Greek}', '\\p{Emoji}', '\\b', '\\n', '\\cJ', '\\u0000']);
      const [first, last] = [this.letter(), this.letter()].sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
      return this.below(2) ? this.said(first, true) : `${this.said(first, true)}-${this.said(last, true)}`;
    });
    return [`[${this.of(['', '', '^'])}${items.join('')}]`, () => this.letter()];
  }

  /** None where this engine does not know them yet. */
  modifiers() { return HAS_MODIFIERS ? this.of(['?i:', '?s:', '?m:', '?-i:', '?im-s:']) : '?:'; }

  atom(depth) {
    switch (this.below(depth > 0 ? 9 : 6)) {
      case 0: return ['.', () => this.letter()];
      case 1: return this.class();
      case 2: return [this.of(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '\\p{L}', '\\p{Letter}', '\\P{gc=N}', '\\p{White_Space}', '\\p{Any}', '\\P{ASCII}', '\\t', '\\/', '\\cM']), () => this.letter()];
      case 3: case 4: case 5: {
        const letter = this.letter();
        return [this.said(letter, false), () => letter];
      }
      default: {
        const [pattern, make] = this.either(depth - 1);
        return [`(${this.of(['', '?:', '?:', this.modifiers()])}${pattern})`, make];
      }
    }
  }

  /** Anchors now and then. */
  term(depth) {
    if (this.below(14) === 0) return [this.of(['^', '$']), () => ''];
    const [pattern, make] = this.atom(depth);
    if (this.below(3)) return [pattern, make];
    const least = this.below(3);
    const most = least + this.below(3);
    const count = this.of(['*', '+', '?', `{${least}}`, `{${least},}`, `{${least},${most}}`]);
    return [pattern + count + this.of(['', '', '?']), () => Array.from({ length: least + this.below(3) }, make).join('')];
  }

  sequence(depth) {
    const terms = Array.from({ length: this.below(4) }, () => this.term(depth));
    if (depth > 0 && this.below(9) === 0) terms.splice(this.below(terms.length + 1), 0, [`(?${this.of(['=', '!'])}${this.either(0)[0]})`, () => '']);
    return [terms.map(([pattern]) => pattern).join(''), () => terms.map(([, make]) => make()).join('')];
  }

  either(depth) {
    const all = Array.from({ length: 1 + this.below(3) }, () => this.sequence(depth));
    return [all.map(([pattern]) => pattern).join('|'), () => this.of(all)[1]()];
  }

  /** Something that may be a pattern. */
  noise() {
    const parts = ['a', 'b', '1', '{', '}', '{2}', '{1,2}', '{,2}', '{2,1}', '(', ')', '(?:', '(?<a>', '(?<1>', '(?', '[', ']', '[^', '-', '\\', '\\d', '\\-', '\\_', '\\u', '\\x4', '^', '$', '*', '+', '?', '|', '.', ',', '\\c', '\\08', '\\p{L', '\\8', '/', '\u{1f600}', '\\ud83d'];
    return Array.from({ length: 1 + this.below(6) }, () => this.of(parts)).join('');
  }
}

/** What means something else without the flag u. */
const OF_U = /\\[pPu]|[\u{10000}-\u{10ffff}]/u;

/** As compile.h has them. */
const flagsOf = (flags) => [...flags].reduce((all, flag) => all | { i: 2, s: 4, m: 16 }[flag], 0);
const OLD_CASE = 32;

/** Texts about which the two do not agree. */
function disagreements(match, regex, texts) {
  return texts.filter((text) => text.isWellFormed() && match(text) !== regex.test(text));
}

test(`${COUNT} patterns: the same texts`, async (t) => {
  const seen = { pairs: 0, matches: 0, refused: 0 };
  for (let seed = 1; seed <= COUNT; seed++) {
    const patterns = new Patterns(seed);
    const [pattern, make] = patterns.either(2);
    const flags = `${seed % 3 ? '' : 's'}${seed % 4 < 2 ? '' : 'i'}${seed % 5 ? '' : 'm'}`;
    const regex = theirs(pattern, `${flags}u`);
    assert.ok(regex, pattern);
    const match = await ours(pattern, flagsOf(flags));
    const texts = Array.from({ length: TEXTS }, (_, i) => [...(i % 3 ? make() : patterns.text())].slice(0, MOST_LETTERS).join(''));
    if (match instanceof Error) {
      seen.refused++;
      const isNothing = !texts.some((text) => regex.test(text));
      assert.ok(/anchor|lookahead/.test(match.message) || isNothing, `${JSON.stringify(pattern)}: ${match.message}`);
      continue;
    }
    seen.pairs += TEXTS;
    seen.matches += texts.filter((text) => regex.test(text)).length;
    assert.deepEqual(disagreements(match, regex, texts), [], `${seed}: ${JSON.stringify(pattern)}`);
  }
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.pairs > 0.8 * TEXTS * COUNT && seen.matches > 0.1 * seen.pairs, JSON.stringify(seen));
});

test('what is no pattern is refused, and what is one without the flag u means the same', async (t) => {
  const seen = { refused: 0, lenient: 0, same: 0 };
  for (let seed = 1; seed <= 10 * COUNT; seed++) {
    const patterns = new Patterns(seed);
    const pattern = patterns.noise();
    const match = await ours(pattern, 0);
    const twice = pattern.replace(/(?<!\\)\(\?<a>/g, '(?:');      // names that come twice change nothing
    const strict = theirs(twice, 'u');
    const regex = strict ?? theirs(twice, '');
    if (match instanceof Error) {
      assert.ok(!strict || /anchor|No reply/.test(match.message), `${JSON.stringify(pattern)}: ${match.message}`);
      seen.refused++;
      continue;
    }
    assert.ok(regex, `${JSON.stringify(pattern)} is no pattern`);
    seen[strict ? 'same' : 'lenient']++;
    if (!strict && OF_U.test(pattern)) continue;
    const texts = Array.from({ length: TEXTS }, (_, i) => (i % 2 ? patterns.text() : pattern.replace(/\\|\?/g, '').slice(0, 1 + i)));
    assert.deepEqual(disagreements(match, regex, strict ? texts : texts.filter((text) => !OF_U.test(text))), [], `${seed}: ${JSON.stringify(pattern)}`);
  }
  t.diagnostic(JSON.stringify(seen));
  assert.ok(Object.values(seen).every((n) => n > 0.02 * COUNT), JSON.stringify(seen));
});

/** What ECMAScript's tables of properties name, and values of each kind in every spelling. */
const NAMES = [
  ...['Any', 'ASCII', 'Assigned'], ...PROPERTIES.flat(),
  ...CATEGORIES.flatMap((name) => [name, `gc=${name}`]), ...['L', 'Letter', 'LC', 'Cased_Letter', 'M', 'Combining_Mark', 'N', 'P', 'punct', 'S', 'Z', 'C', 'Other', 'cntrl', 'digit',
    'Uppercase_Letter', 'General_Category=Titlecase_Letter', 'Math_Symbol', 'Private_Use', 'Surrogate', 'Unassigned'],
  ...SCRIPTS.flatMap((names) => names.flatMap((name) => [`sc=${name}`, `scx=${name}`])), 'Script=Greek', 'Script_Extensions=Hira',
];

/** Above U+3000, by how much a step goes. */
const STRIDE = length(97, 1);

test(`${NAMES.length} properties have the code points that they have in V8`, async (t) => {
  if (process.versions.unicode !== '17.0') return t.skip(`this Node has Unicode ${process.versions.unicode}, the tables 17.0`);
  const points = Array.from({ length: 0x110000 }, (_, c) => c).filter((c) => (c < 0xD800 || c > 0xDFFF) && (c < 0x3000 ? true : c % STRIDE === 0));
  const text = (c) => String.fromCodePoint(c);
  for (const [i, name] of [...NAMES.entries()].filter(([n]) => n < 60 || n % length(8, 1) === 0)) {
    const regex = new RegExp(`^\\p{${name}}$`, 'u');
    const match = await ours(`\\${i % 2 ? 'p' : 'P'}{${name}}`, 0);
    if (match instanceof Error) {
      assert.match(match.message, /No reply can satisfy/, name);
      assert.ok(!points.some((c) => regex.test(text(c)) === Boolean(i % 2)), name);
      continue;
    }
    const near = points.filter((_, at) => at % 7 === i % 7);
    assert.equal(near.find((c) => match(text(c)) !== (regex.test(text(c)) === Boolean(i % 2))), undefined, name);
  }
  return undefined;
});

test('the flag i takes the same letters for one as in V8, with u and without', async (t) => {
  if (process.versions.unicode !== '17.0') return t.skip(`this Node has Unicode ${process.versions.unicode}, the tables 17.0`);
  const cased = Array.from({ length: 0x20000 }, (_, c) => String.fromCodePoint(c)).filter((letter) => /[\p{CWCM}\p{CWCF}]/u.test(letter));
  for (const [flags, number] of [['iu', 2], ['i', 2 | OLD_CASE]]) {
    const letters = flags === 'i' ? cased.filter((letter) => letter.length === 1) : cased;
    for (const letter of letters.filter((_, i) => i % length(5, 1) === 0)) {
      const regex = new RegExp(`^${letter}$`, /** @type {string} */ (flags));
      const match = /** @type {(text: string) => boolean} */ (await ours(letter, number));
      const near = cased.filter((one) => one === letter || regex.test(one) || one.toLowerCase() === letter.toLowerCase() || one.toUpperCase() === letter.toUpperCase());
      assert.deepEqual(near.filter(match), near.filter((one) => regex.test(one)), `${flags} ${letter}`);
    }
  }
  return undefined;
});

test('what is refused is named, with its place', async () => {
  for (const [kind, text, words] of [
    ['regex', `${'ä'.repeat(60)}\\b`, /"\.\.\.ä{14}\\b" cannot be used, at byte 122: word boundaries/], ['regex', '[\\w-.]x', /"\[\\w-\.\]x" .* needs a letter at each end/],
    ['regex', '(?<1>a)', /not a group name/], ['regex', '(?<>a)', /name is empty/], ['regex', 'a{2}{3}', /nothing to repeat/], ['regex', 'say "\\b"', /"say \\"\\b\\""/],
    ['grammar', 'root ::= "x"\nb ::= "\\q"', /line 2, at "\\q\\"": there is no such escape/], ['grammar', 'root ::= "x"\r\nroot ::= "b"', /line 2, at "root ::= \\"b\\"": a rule is defined twice/],
    ['grammar', 'root ::= [z-a]', /at "z-a\]": a range is out of order/], ['grammar', 'root ::= "\\uD800"', /at "\\uD800\\"": half a character/], ['grammar', 'root ::= "a', /line 1, at its end: .* not closed/],
    ['grammar', 'root ::= a\na ::= b\nb ::= a "x" | "y"', /The rule "a" leads to itself/], ['grammar', `root ::= "x" ${'é'.repeat(40)}`, /at "é{16}":/],
  ]) await assert.rejects(() => grammars.compile(/** @type {any} */ (kind), text), (error) => error.code === 'use/schema' && words.test(error.message) && !assert.ok(error.detail.rule), text);
});

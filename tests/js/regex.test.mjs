// SPDX-License-Identifier: MIT
// Random patterns against JavaScript's own RegExp, in the module of grammars as the package has it: what is not refused matches the same texts, and no
// text is taken for a pattern that is none.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { Grammars } from '../../js/engine/grammar.js';
import { length } from '../fixtures/lengths.mjs';
import { random } from '../fixtures/random.mjs';

const COUNT = length(600, 20_000);
const TEXTS = 16;
const END = 256;

/** As many tokens as there are bytes, and one that ends a reply. */
const BYTES = {
  facts: { tokens: 257, endTokens: [END] },
  tokens: () => ({
    starts: Int32Array.from({ length: 258 }, (_, id) => Math.min(id, END)), bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
    types: Uint8Array.from({ length: 257 }, (_, id) => (id === END ? 3 : 1)),
  }),
};

let grammars;
before(async () => { grammars = await Grammars.open(new WebAssembly.Module(readFileSync(new URL('../../dist/grammar.wasm', import.meta.url))), /** @type {any} */ (BYTES)); });

/** Whether a text is all that a pattern describes; null: the pattern is refused. */
function ours(pattern, flags) {
  let grammar;
  try {
    grammar = grammars.compile('regex', pattern, flags);
  } catch (error) {
    assert.equal(error.code, 'use/schema', `${pattern}: ${error.stack}`);
    return error;
  }
  grammar.users--;
  return (text) => {
    let state = grammar.start;
    for (const byte of new TextEncoder().encode(text)) {
      if (!(grammar.mask(state)[byte >>> 5] >>> (byte & 31) & 1)) return false;
      state = grammar.take(state, byte);
    }
    return grammar.accepts(state);
  };
}

function theirs(pattern, flags) {
  try {
    new RegExp(pattern, flags);      // without what is put around it
    return new RegExp(`^(?:${pattern})$`, flags);
  } catch {
    return null;
  }
}

const LETTERS = [...'aabbbc01_- .]}{,/"\\\n\r\t\u2028é\u017fßŁ\u00a0中😀\u{10ffff}\u{1d7d9}'];

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
      if (this.below(4) === 0) return this.of(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '\\p{L}', '\\P{N}', '\\b', '\\n', '\\cJ', '\\u0000']);
      const [first, last] = [this.letter(), this.letter()].sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
      return this.below(2) ? this.said(first, true) : `${this.said(first, true)}-${this.said(last, true)}`;
    });
    return [`[${this.of(['', '', '^'])}${items.join('')}]`, () => this.letter()];
  }

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
        return [`(${this.of(['', '?:', '?:'])}${pattern})`, make];
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

/** Texts about which the two do not agree. */
function disagreements(match, regex, texts) {
  return texts.filter((text) => text.isWellFormed() && match(text) !== regex.test(text));
}

test(`${COUNT} patterns: the same texts`, (t) => {
  const seen = { pairs: 0, matches: 0, refused: 0 };
  for (let seed = 1; seed <= COUNT; seed++) {
    const patterns = new Patterns(seed);
    const [pattern, make] = patterns.either(2);
    const dotAll = seed % 3 === 0;
    const regex = theirs(pattern, dotAll ? 'su' : 'u');
    assert.ok(regex, pattern);
    const match = ours(pattern, dotAll ? 4 : 0);
    const texts = Array.from({ length: TEXTS }, (_, i) => (i % 3 ? make() : patterns.text()));
    if (match instanceof Error) {
      seen.refused++;
      const isNothing = !texts.some((text) => regex.test(text));
      assert.ok(/anchor/.test(match.message) || isNothing, `${JSON.stringify(pattern)}: ${match.message}`);
      continue;
    }
    seen.pairs += TEXTS;
    seen.matches += texts.filter((text) => regex.test(text)).length;
    assert.deepEqual(disagreements(match, regex, texts), [], `${seed}: ${JSON.stringify(pattern)}`);
  }
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.pairs > 0.8 * TEXTS * COUNT && seen.matches > 0.1 * seen.pairs, JSON.stringify(seen));
});

test('what is no pattern is refused, and what is one without the flag u means the same', (t) => {
  const seen = { refused: 0, lenient: 0, same: 0 };
  for (let seed = 1; seed <= 10 * COUNT; seed++) {
    const patterns = new Patterns(seed);
    const pattern = patterns.noise();
    const match = ours(pattern, 0);
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

test('what is refused is named, with its place', () => {
  for (const [kind, text, words] of [
    ['regex', `${'ä'.repeat(60)}\\b`, /"\.\.\.ä{14}\\b" cannot be used, at byte 122: word boundaries/], ['regex', '[\\w-.]x', /"\[\\w-\.\]x" .* needs a letter at each end/],
    ['regex', '(?<1>a)', /no name of a group/], ['regex', '(?<>a)', /name is empty/], ['regex', 'a{2}{3}', /nothing to repeat/], ['regex', 'say "\\b"', /"say \\"\\b\\""/],
    ['grammar', 'root ::= "x"\nb ::= "\\q"', /line 2, at "\\q\\"": there is no such escape/], ['grammar', 'root ::= "x"\r\nroot ::= "b"', /line 2, at "root ::= \\"b\\"": a rule is defined twice/],
    ['grammar', 'root ::= [z-a]', /at "z-a\]": a range is out of order/], ['grammar', 'root ::= "\\uD800"', /at "\\uD800\\"": half a character/], ['grammar', 'root ::= "a', /line 1, at its end: .* not closed/],
    ['grammar', 'root ::= a\na ::= b\nb ::= a "x" | "y"', /The rule "a" leads to itself/], ['grammar', `root ::= "x" ${'é'.repeat(40)}`, /at "é{16}":/],
  ]) assert.throws(() => grammars.compile(/** @type {any} */ (kind), text), (error) => error.code === 'use/schema' && words.test(error.message) && !assert.ok(error.detail.rule), text);
});

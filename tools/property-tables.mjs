// SPDX-License-Identifier: MIT
// Writes src/grammar/property_data.h from the JavaScript engine's own Unicode data:
// node tools/property-tables.mjs > src/grammar/property_data.h
//
// The tables have the properties that \p{...} in patterns knows, and the letters that the flag i takes for the same, as
// in V8. src/grammar/properties.c reads them. Numbers are written in groups of seven bits, the lowest first. A set is
// described by its differences from a union of general categories.

import { CATEGORIES, PROPERTIES, SCRIPTS } from './unicode-names.mjs';

const END = 0x110000;
const SURROGATES = [0xD800, 0xE000];
const PER_LINE = 30;
const BASES = 8;                            // the first properties, on which others may be based
const ALTERNATING = CATEGORIES.length;      // stands for Lu, Ll, Lu, Ll, ...
const SHORT = 7;                            // shorter runs fit into the byte of their category

/** All code points but the surrogates, which would form pairs. */
const BELOW = Array.from({ length: SURROGATES[0] }, (_, i) => String.fromCharCode(i)).join('');
const ABOVE = Array.from({ length: END - SURROGATES[1] }, (_, i) => String.fromCodePoint(i + SURROGATES[1])).join('');

/** The places where a property's ranges begin and end, in turn. */
function togglesOf(property) {
  const all = [];
  const add = (first, end) => (all.at(-1) === first ? all.splice(-1, 1, end) : all.push(first, end));
  const scan = (text) => {
    for (const { 0: found } of text.matchAll(new RegExp(`\\p{${property}}+`, 'gu'))) {
      const first = found.codePointAt(0);
      add(first, first + [...found].length);
    }
  };
  scan(BELOW);
  if (new RegExp(`\\p{${property}}`, 'u').test('\uD800')) add(...SURROGATES);
  scan(ABOVE);
  return all;
}

/** For each code point the index of its set; each must be in one. */
function partition(names) {
  const of = new Uint8Array(END).fill(255);
  names.forEach((name, index) => {
    const toggles = togglesOf(name);
    for (let i = 0; i < toggles.length; i += 2) of.fill(index, toggles[i], toggles[i + 1]);
  });
  if (of.includes(255)) throw new Error(`U+${of.indexOf(255).toString(16)} is in no set`);
  return of;
}

/** [index, length] of each run of equal values. */
function runsOf(of) {
  const runs = [];
  for (let first = 0, at = 1; at <= END; at++) {
    if (at < END && of[at] === of[first]) continue;
    runs.push([of[first], at - first]);
    first = at;
  }
  return runs;
}

function number(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 | 128);
  return [...bytes, value];
}

/** Joins alternating capital and small letters into one run. */
function joined(runs) {
  const all = [];
  for (let i = 0; i < runs.length;) {
    let n = 0;
    while (runs[i + n]?.[1] === 1 && runs[i + n][0] === n % 2) n++;
    all.push(n > 3 ? [ALTERNATING, n] : runs[i]);
    i += n > 3 ? n : 1;
  }
  return all;
}

/** For each run one byte of category and length; a long length follows in further bytes. */
const categoryBytes = (runs) => joined(runs).flatMap(([category, length]) => (length < SHORT ? [category << 3 | length]
  : [category << 3 | SHORT, ...number(length - SHORT)]));

/** The numbers that are in exactly one of two ascending lists. */
function symmetric(a, b) {
  const all = [];
  for (let i = 0, k = 0; i < a.length || k < b.length;) {
    if (a[i] === b[k]) [i, k] = [i + 1, k + 1];
    else all.push(k === b.length || a[i] < b[k] ? a[i++] : b[k++]);
  }
  return all;
}

const gaps = (toggles) => toggles.flatMap((at, i) => number(at - (toggles[i - 1] ?? 0)));

/**
 * Finds the description of a set with the fewest bytes: a union of categories, toggled by one or two of them as long as
 * that helps, and perhaps an earlier set.
 */
function describe(toggles, categories, earlier) {
  const sizeOf = (set) => set.reduce((size, at, i) => size + 1 + (at - (set[i - 1] ?? 0) > 127) + (at - (set[i - 1] ?? 0) > 16383), 0);
  const found = [null, ...earlier].map((base, index) => {
    let mask = 0;
    let rest = base ? symmetric(toggles, base) : toggles;
    for (let better = true; better;) {
      better = false;
      for (const { bits, set } of categories) {
        const tried = symmetric(rest, set);
        if (sizeOf(tried) >= sizeOf(rest)) continue;
        rest = tried;
        mask ^= bits;
        better = true;
      }
    }
    return { mask: mask >>> 0, base: index, bytes: gaps(rest) };
  });
  return found.sort((a, b) => a.bytes.length - b.bytes.length)[0];
}

/** All categories and pairs of categories, with their bits. */
function unions() {
  const ones = CATEGORIES.map((name, index) => ({ bits: 2 ** index, set: togglesOf(name) }));
  const twos = ones.flatMap((a, i) => ones.slice(i + 1).map((b) => ({ bits: a.bits | b.bits, set: symmetric(a.set, b.set) })));
  return [...ones, ...twos];
}

/** Script extensions: the code points that belong to other scripts than their own one. */
function extensions(names, script) {
  const sets = new Map();
  const several = Array.from({ length: END }, () => 0n);
  names.forEach((name, index) => {
    const toggles = togglesOf(`scx=${name}`);
    for (let i = 0; i < toggles.length; i += 2) for (let at = toggles[i]; at < toggles[i + 1]; at++) several[at] |= 1n << BigInt(index);
  });
  const runs = [];
  for (let at = 0; at < END; at++) {
    if (several[at] === 1n << BigInt(script[at])) continue;
    const last = runs.at(-1);
    if (last && last.end === at && last.set === several[at]) last.end++;
    else runs.push({ first: at, end: at + 1, set: several[at] });
    if (!sets.has(several[at])) sets.set(several[at], sets.size);
  }
  const bytes = runs.flatMap(({ first, end, set }, i) => [...number(first - (runs[i - 1]?.end ?? 0)), ...number(end - first), sets.get(set)]);
  const members = (set) => names.map((_, index) => index).filter((index) => set >> BigInt(index) & 1n);
  return { runs: bytes, sets: [...sets.keys()].flatMap((set) => [members(set).length, ...members(set)]) };
}

// --- letters that the flag i takes for the same
// -----------------------------------------------------------------------

const isSameOld = (a, b) => a < 0x10000 && b < 0x10000 && new RegExp(`^\\u${a.toString(16).padStart(4, '0')}$`, 'i').test(String.fromCodePoint(b));

/** [code point, the representative of its class, whether only with the flag u] */
function folds() {
  const single = (text) => ([...text].length === 1 ? [text.codePointAt(0)] : []);
  const cased = [...(BELOW + ABOVE).matchAll(/[\p{Changes_When_Casemapped}\p{Changes_When_Casefolded}]/gu)].map(([letter]) => letter).join('');
  const seen = new Set();
  const classes = [];
  for (const letter of cased) {
    if (seen.has(letter)) continue;
    const alike = [...cased.matchAll(new RegExp(letter, 'giu'))].map(([one]) => one);
    for (const one of alike) seen.add(one);
    classes.push(alike.map((one) => /** @type {number} */ (one.codePointAt(0))));
  }
  const stands = (members) => members.find((one) => single(String.fromCodePoint(one).toLowerCase())[0] === one && members.every((other) => other === one
    || isSameOld(one, other) || !members.some((third) => third !== other && isSameOld(third, other)))) ?? members[0];
  return classes.filter((members) => members.length > 1).flatMap((members) => {
    const one = stands(members);
    return members.filter((c) => c !== one).map((c) => [c, one, !isSameOld(c, one)]);
  }).sort((a, b) => a[0] - b[0]);
}

/**
 * Runs of letters with the same distance to their representatives: gap << 2 | every second letter << 1 | only with the
 * flag u; count; difference.
 */
function foldBytes(pairs) {
  const runs = [];
  const left = [...pairs];
  while (left.length) {
    const [first, to, old] = left.shift();
    const alike = (step) => {
      const found = [];
      for (let at = first + step; ; at += step) {
        const next = left.find(([c]) => c === at);
        if (!next || next[1] - at !== to - first || next[2] !== old) return found;
        found.push(next);
      }
    };
    const [ones, twos] = [alike(1), alike(2)];
    const [step, more] = twos.length > ones.length ? [2, twos] : [1, ones];
    for (const one of more) left.splice(left.indexOf(one), 1);
    runs.push({ first, step, old, count: 1 + more.length, by: to - first });
  }
  return runs.flatMap(({ first, step, old, count, by }, i) => [...number((first - (runs[i - 1]?.first ?? 0)) * 4 + (step - 1) * 2 + Number(old)),
    ...number(count), ...number(by < 0 ? -2 * by - 1 : 2 * by)]);
}

// --- the file --------------------------------------------------------------------------------------------------------------

function lines(values) {
  const out = [];
  for (let i = 0; i < values.length; i += PER_LINE) out.push(`    ${values.slice(i, i + PER_LINE).join(', ')},`);
  return out.join('\n');
}

const bytes = (name, values) => `static const uint8_t ${name}[${values.length}] = {\n${lines(values)}\n};\n`;
const text = (name, rows) => `static const char ${name}[] =\n${rows.map((row) => `    "${row};"`).join('\n')};\n`;

const category = partition(CATEGORIES);
const runs = runsOf(category);
const script = partition(SCRIPTS.map(([first]) => `sc=${first}`));
const more = extensions(SCRIPTS.map(([first]) => first), script);
const all = unions();
const sets = PROPERTIES.map(([name]) => togglesOf(name));
const described = sets.map((set, i) => describe(set, all, sets.slice(0, Math.min(i, BASES))));
const masks = described.map(({ mask, base, bytes: { length } }) => `{0x${mask.toString(16)}, ${length}, ${base}}`);

process.stdout.write(`/* SPDX-License-Identifier: MIT
 *
 * Generated by tools/property-tables.mjs from Unicode ${process.versions.unicode} (the data of Node ${process.versions.node}). Do not edit.
 */
/* category << 3 | length; length ${SHORT} or more: the rest follows; category ${ALTERNATING}: Lu and Ll in turn */
${bytes('category_runs', categoryBytes(runs))}
/* script, length */
${bytes('script_runs', runsOf(script).flatMap(([index, length]) => [index, ...number(length)]))}
/* distance from the end of the previous run, length, index of the set */
${bytes('extension_runs', more.runs)}
/* number of scripts, then their indices */
${bytes('extension_sets', more.sets)}
/* Properties: each is close to the symmetric difference of a union of general categories and of the property with the
 * number base (from 1 on; 0: none); size bytes of property_toggles say where it differs from that. */
static const struct {
    uint32_t categories;
    uint16_t size;
    uint8_t base;
} property_sets[${masks.length}] = {
${masks.map((mask) => `    ${mask},`).join('\n')}
};
/* distances between the places where a difference begins and where it ends, in turn */
${bytes('property_toggles', described.flatMap((one) => one.bytes))}
/* distance from the previous run's first letter << 2 | every second letter << 1 | only with the flag u; count; zigzag of
 * the distance to the representative */
${bytes('fold_runs', foldBytes(folds()))}
${text('property_names', PROPERTIES.map((names) => names.join(' ')))}
${text('script_names', SCRIPTS.map((names) => names.join(' ')))}`);

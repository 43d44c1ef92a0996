// SPDX-License-Identifier: MIT
// The passages of texts that are nearest to a question, by its words (BM25: Robertson and Zaragoza, The Probabilistic
// Relevance Framework, 2009). A word counts more the fewer passages have it. This needs no model and knows all
// languages. Words are compared without case and accents, and by their beginnings, so that most inflected forms meet.
// If a model has compared the meanings (conversation/late/meaning.js), both orders are merged by the reciprocals of
// their ranks, since scores of different kinds cannot be added.

/** Letters of a passage, about 200 tokens. */
const SIZE = 800;

/** Letters of a passage in scripts whose letters are whole syllables or words. */
const DENSE_SIZE = 300;

/** Letters of a text that tell its script. */
const SAMPLE = 2000;

/**
 * Is added to each rank before its reciprocal is taken (Cormack, Clarke and Büttcher, Reciprocal Rank Fusion, 2009).
 * They took 60 for lists of a thousand; here few passages fit, so that the first of either order have to count more.
 */
const RANK = 10;

/** Letters of a word that count. */
const STEM = 6;

/**
 * How soon repetitions of a word count less, and how much the length of a passage counts. A passage that is shorter
 * than most, as at the end of a page, is no nearer for that.
 */
const K1 = 1.2;
const B = 0.75;

/** A text that takes no more than this part of the room is sent whole. */
const SMALL = 1 / 8;

/** A line that marks a place in a document, and a heading. */
const PLACE = /^\[((?:page|slide|chapter) \d+)\]$/;
const HEADING = /^#{1,6} (.{1,80})/;

/** Scripts that are written without spaces. Firefox has no Intl.Segmenter, which finds their words, before 125. */
const SPACELESS = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter(undefined, { granularity: 'word' });

/**
 * Letters of a passage, of which two fit. It follows from the text alone wherever there is room, so that the same
 * passages are met again, whatever the model and the question.
 * @param {number} most letters that fit
 */
function sizeOf(text, most) {
  const dense = text.slice(0, SAMPLE).match(new RegExp(SPACELESS, 'gu'))?.length ?? 0;
  let size = dense > Math.min(SAMPLE, text.length) / 3 ? DENSE_SIZE : SIZE;
  while (size > Math.max(2, most / 2)) size /= 2;
  return Math.ceil(size);
}

/** Where a text of at least this many letters is best cut: after a line, a sentence, a word; else anywhere. */
function cutBefore(text, size) {
  const head = text.slice(0, size);
  const line = head.lastIndexOf('\n') + 1;
  if (line > size / 2) return line;
  const sentence = Math.max(...['. ', '? ', '! ', '。', '？', '！'].map((end) => head.lastIndexOf(end) + end.length));
  if (sentence > size / 2) return sentence;
  const word = head.lastIndexOf(' ') + 1;
  if (word > size / 2) return word;
  return /[\ud800-\udbff]$/.test(head) ? size - 1 : size;
}

/**
 * Cuts a text into passages, at paragraphs, headings and pages.
 * @param {string} text
 * @param {number} size letters of a passage
 * @returns {Array<{place: string, text: string}>} place: page and heading, or the number of the first line
 */
export function cut(text, size) {
  const passages = [];
  let page = '';
  let heading = '';
  let line = 1;
  let first = 1;
  let held = '';
  const end = () => {
    const place = [page, heading].filter(Boolean).join(', ') || `line ${first}`;
    if (held.trim()) passages.push({ place, text: held.trim() });
    held = '';
  };
  for (const paragraph of text.split('\n\n')) {
    const [, mark] = PLACE.exec(paragraph) ?? [];
    const [, title] = HEADING.exec(paragraph) ?? [];
    if (mark || title || held.length + paragraph.length > size) end();
    if (mark) page = mark;
    if (title) heading = title;
    if (!held) first = line;
    let rest = mark ? '' : paragraph;
    while (rest.length > size) {
      const at = Math.max(1, cutBefore(rest, size));
      held += rest.slice(0, at);
      end();
      first += rest.slice(0, at).split('\n').length - 1;
      rest = rest.slice(at);
    }
    held += `${rest}\n\n`;
    line += paragraph.split('\n').length + 1;
  }
  end();
  return passages;
}

/** The words of a text, without case, accents and long endings. */
function wordsOf(text) {
  const plain = text.normalize('NFKD').replaceAll(/[\u0300-\u036f]+/g, '').normalize('NFKC').toLowerCase();
  const words = [];
  for (const [run] of plain.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (!segmenter || !SPACELESS.test(run)) words.push(run.slice(0, STEM));
    else for (const { segment, isWordLike } of segmenter.segment(run)) if (isWordLike) words.push(segment);
  }
  return words;
}

/** A word, and its beginnings of three letters or more that lack the last letter, or the last two. */
const beginnings = (word) =>
  [word, word.slice(0, -1), word.slice(0, -2)].filter((form) => form === word || form.length > 2);

/** Finds the word of a question that is the same as another word, or differs by an ending of one or two letters. */
function finder(question) {
  const wanted = new Map();
  for (const word of wordsOf(question)) wanted.set(word, word);
  const shorter = new Map([...wanted.keys()].flatMap((word) => beginnings(word).map((form) => [form, word])));
  const ending = (word) => wanted.get(beginnings(word).find((form) => wanted.has(form)));
  return (word) => wanted.get(word) ?? shorter.get(word) ?? ending(word);
}

/**
 * How near each passage is to a question: 0 if it has none of its words.
 * @param {string[]} texts
 * @param {string} question
 * @returns {number[]}
 */
export function scores(texts, question) {
  const find = finder(question);
  const having = new Map();     // word -> number of texts that have it
  const found = texts.map((text) => {
    const words = wordsOf(text);
    const times = new Map();
    for (const word of words.map(find)) if (word) times.set(word, (times.get(word) ?? 0) + 1);
    for (const word of times.keys()) having.set(word, (having.get(word) ?? 0) + 1);
    return { length: words.length, times };
  });
  const mean = found.reduce((sum, { length }) => sum + length, 0) / Math.max(1, found.length) || 1;
  const weigh = (n) => Math.log(1 + (found.length - n + 0.5) / (n + 0.5));
  return found.map(({ length, times }) => {
    const damping = K1 * (1 - B + (B * Math.max(length, mean)) / mean);
    const parts = [...times].map(([word, n]) => (weigh(having.get(word)) * n * (K1 + 1)) / (n + damping));
    return parts.reduce((sum, part) => sum + part, 0);
  });
}

/**
 * Merges orders of the same items.
 * @param {number[][]} lists scores of all items; what is 0, less or unknown has no rank
 * @returns {number[]} the sums of the reciprocals of their ranks
 */
export function merged(...lists) {
  const sums = lists[0].map(() => 0);
  for (const list of lists) {
    const order = [...list.keys()].filter((i) => list[i] > 0).sort((a, b) => list[b] - list[a] || a - b);
    for (const [rank, i] of order.entries()) sums[i] += 1 / (RANK + rank + 1);
  }
  return sums;
}

/** How near passages are to a question: by its words, and by its meaning, if that was compared. */
function nearness(passages, question, likeness) {
  const near = scores(passages.map(({ text }) => text), question);
  return likeness ? merged(near, passages.map(({ of, at }) => likeness[of]?.[at])) : near;
}

/** Indices of the nearest passages that fit together; of the first ones if none is near. */
function choose(passages, near, most) {
  const order = passages.map((_, i) => i);
  if (near.some(Boolean)) order.sort((a, b) => near[b] - near[a] || a - b);
  const chosen = [];
  let left = most;
  for (const i of order) {
    if (near[i] === 0 && near.some(Boolean)) break;
    const { place, text } = passages[i];
    const taken = place.length + text.length + 8;
    if (taken > left && chosen.length) break;     // smaller ones would fill the room, but are farther
    if (taken > left) continue;
    left -= taken;
    chosen.push(i);
  }
  return chosen.sort((a, b) => a - b);
}

/** The chosen passages of one text in its order, each below its place. */
function write(passages, all, byMeaning) {
  const parts = passages.map(({ place, text }, i) => (place === passages[i - 1]?.place ? text : `[${place}]\n${text}`));
  const how = byMeaning ? 'nearest to the question by words and meaning' : 'nearest to the question';
  return [`(${passages.length} of ${all} passages, those ${how})`, ...parts].join('\n\n');
}

/**
 * A search: in which texts, for what, and for how much.
 * @typedef {object} Job
 * @property {Array<{name: string, text: string}>} texts
 * @property {string} question
 * @property {number} most letters that fit
 * @property {number} [least] letters that always fit, from which the sizes of passages follow; else `most`
 * @property {boolean} [isWhole] small texts are sent whole
 * @property {?number[][]} [likeness] of the passages of each text (`cuts`) to the question, by their meaning
 */

const isSmall = ({ text }, { most, isWhole }) => isWhole && text.length <= most * SMALL;

/** The passages of each text; none of those that are sent whole. @param {Job} job */
export function cuts(job) {
  const { texts, most, least = most } = job;
  return texts.map((one) => (isSmall(one, job) ? [] : cut(one.text, sizeOf(one.text, least))));
}

const flat = (all) => all.flatMap((passages, of) => passages.map((passage, at) => ({ ...passage, of, at })));

/**
 * The nearest passages of all texts, for a model that searches; none if no passage is near.
 * @param {Job} job
 * @returns {Array<{name: string, place: string, text: string}>} in the order of the texts
 */
export function search(job) {
  const { texts, question, most, likeness } = job;
  const passages = flat(cuts(job));
  const near = nearness(passages, question, likeness);
  if (!near.some(Boolean)) return [];
  return choose(passages, near, most).map((i) => {
    const { of, place, text } = passages[i];
    return { name: texts[of].name, place, text };
  });
}

/**
 * What is sent of texts.
 * @param {Job} given
 * @returns {Array<?string>} for each text its passages, or null if it is sent whole
 */
export function nearest(given) {
  const job = { ...given, isWhole: true };
  const { texts, question, most, likeness } = job;
  const all = cuts(job);
  const room = texts.filter((one) => isSmall(one, job)).reduce((left, { text }) => left - text.length, most);
  const passages = flat(all);
  const chosen = choose(passages, nearness(passages, question, likeness), room).map((i) => passages[i]);
  return texts.map((one, i) => (
    isSmall(one, job) ? null : write(chosen.filter(({ of }) => of === i), all[i].length, Boolean(likeness))));
}

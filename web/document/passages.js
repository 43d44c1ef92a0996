// SPDX-License-Identifier: MIT
// The passages of texts that are nearest to a question, by its words (BM25: Robertson and Zaragoza, The Probabilistic
// Relevance Framework, 2009). A word counts more the fewer passages have it. This needs no model and knows all
// languages. Words are compared without case and accents, and by their beginnings, so that most inflected forms meet.

/** Tokens of a passage, about. */
const TOKENS = 200;

/** Letters of a token, about, where nothing is known of the model. */
const LETTERS = 4;

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

/** Scripts that are written without spaces. Firefox has no Intl.Segmenter, which finds their words, before 125. */
const SPACELESS = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter(undefined, { granularity: 'word' });

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

/** Indices of the nearest passages that fit together; of the first ones if no passage has a word of the question. */
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
function write(passages, all) {
  const parts = passages.map(({ place, text }, i) => (place === passages[i - 1]?.place ? text : `[${place}]\n${text}`));
  return [`(${passages.length} of ${all} passages, those nearest to the question)`, ...parts].join('\n\n');
}

/**
 * The nearest passages of all texts, for a model that searches; none if no passage has a word of the question.
 * @param {{texts: Array<{name: string, text: string}>, question: string, most: number}} job most: letters together
 * @returns {Array<{name: string, place: string, text: string}>} in the order of the texts
 */
export function search({ texts, question, most }) {
  const size = Math.ceil(Math.min(TOKENS * LETTERS, most / 2));
  const passages = texts.flatMap(({ name, text }) => cut(text, size).map((passage) => ({ name, ...passage })));
  const near = scores(passages.map(({ text }) => text), question);
  return near.some(Boolean) ? choose(passages, near, most).map((i) => passages[i]) : [];
}

/**
 * @param {object} job
 * @param {Array<{name: string, text: string}>} job.texts
 * @param {string} job.question
 * @param {number} job.most letters that fit
 * @param {number} job.letters of a token, about
 * @returns {Array<?string>} for each text its passages, or null if it is sent whole
 */
export function nearest({ texts, question, most, letters }) {
  const isSmall = ({ text }) => text.length <= most * SMALL;
  const room = texts.filter(isSmall).reduce((left, { text }) => left - text.length, most);
  const cuts = texts.map((one) => (isSmall(one) ? [] : cut(one.text, Math.ceil(TOKENS * letters))));
  const passages = cuts.flatMap((all, of) => all.map((passage) => ({ ...passage, of })));
  const chosen = choose(passages, scores(passages.map(({ text }) => text), question), room).map((i) => passages[i]);
  return texts.map((one, i) => (isSmall(one) ? null : write(chosen.filter(({ of }) => of === i), cuts[i].length)));
}

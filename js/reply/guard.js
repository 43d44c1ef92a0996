// SPDX-License-Identifier: MIT
// What people typed, made ready for a chat template. The file's template puts special tokens between the messages; no
// text that a person typed may become one. So an unused code point, the sentinel, is put after every `<` of the content
// before rendering; the tokenizer looks for special tokens first and removes sentinels afterwards. That holds wherever
// the template puts the content, and for a token split over two messages as well.
//
// The content's own thinking is taken out here, not by the template: with sentinels in it the template cannot see it.
// All of it goes in steps (shared/steps.js): texts can be long.

import { badParam } from '../shared/errors.js';
import { mapSteps } from '../shared/raw-json.js';
import { PART, mapParts } from '../shared/steps.js';

/** Marks in a row that are put in order: the time for that grows by the square of them, and no script has so many. */
const MOST_MARKS = 1000;

/**
 * What may join with what stands before it: marks, the inner letters of Korean syllables, vowels of Kirat Rai. And a
 * letter that does not.
 */
const MARKS = /[\p{M}\u1160-\u11ff\u{16d40}-\u{16d7f}]+/gu;
const LETTER = /[^\p{M}\u1160-\u11ff\u{16d40}-\u{16d7f}]/gu;

/**
 * Where a text can be cut so that both parts are composed as in it: before the next letter that joins with nothing
 * before it.
 */
function joint(text, at) {
  if (at >= text.length) return text.length;
  LETTER.lastIndex = at;
  return LETTER.exec(text)?.index ?? text.length;
}

const isMade = (text) => {
  for (const [marks] of text.matchAll(MARKS)) if (marks.length > MOST_MARKS) return true;
  return false;
};

/** A text as NFC has it; one that is made to take long stays what it is. @returns {Generator<void, string>} */
export function* composed(text) {
  const parts = [];
  for (let at = 0, end; at < text.length; at = end) {
    end = joint(text, at + PART);
    const part = text.slice(at, end);
    if (isMade(part)) return text;
    parts.push(part.normalize('NFC'));
    if (end < text.length) yield;
  }
  return parts.join('');
}

/**
 * Noncharacters first: no text should have them. Then private use, of which there is more than any conversation spells
 * out.
 */
function* sentinels() {
  for (let point = 0xfdd0; point <= 0xfdef; point++) yield point;
  for (let point = 0xf0000; point <= 0xffffd; point++) yield point;
}

/** Finds a code point that texts do not have. */
export class Unused {
  #used = new Set();

  /** A text stays what it is, and is one of them. @param {string} text @returns {Generator<void, string>} */
  * seen(text) {
    return yield* mapParts(text, (part) => {
      for (const point of part.match(/[\u{fdd0}-\u{fdef}\u{f0000}-\u{ffffd}]/gu) ?? []) this.#used.add(point);
      return part;
    });
  }

  get point() {
    for (const point of sentinels()) if (!this.#used.has(String.fromCodePoint(point))) return point;
    throw badParam('messages', 'use every private character there is');
  }
}

/**
 * A text in which no special token can be typed. (What replaceAll() makes V8 leaves in pieces, which the first reader
 * puts together.)
 */
export const guarded = (text, point) => mapParts(text, (part) => part.split('<').join(`<${point}`));

/** The same without the sentinel. */
export const unguarded = (text, point) => mapParts(text, (part) => part.split(point).join(''));

const withoutFirstLines = (text) => text.replace(/^\n+/, '');

/** No pattern does it: one takes time by the square of lines' ends that are not the last. */
function withoutLastLines(text) {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/**
 * Templates that take a message's thinking out of its content; and those of them that leave the lines' ends behind it.
 */
const SPLITS = /(["'])<\/think>\1\s*(?:\)|in\b)/;
const KEEPS_LINES = /split\((["'])<\/think>\1\)\s*\[-1\]\s*-?%\}/;

/**
 * A content with thinking, taken apart as templates do it: the thought stands before the first mark that ends one,
 * behind the last one that begins one, if there is any; the answer behind the last that ends one.
 */
function thoughtOf(content, template, { open, close }) {
  const first = content.indexOf(close);
  if (first < 0 || (template && !SPLITS.test(template))) return { content };
  const [before, after] = [
    withoutLastLines(content.slice(0, first)),
    content.slice(content.lastIndexOf(close) + close.length),
  ];
  const begin = before.lastIndexOf(open);
  const thought = withoutFirstLines(begin < 0 ? before : before.slice(begin + open.length));
  return { thought, content: KEEPS_LINES.test(template) ? after : withoutFirstLines(after) };
}

/**
 * What was thought is given to templates by both of its names, as transformers does. What an assistant's content has of
 * it is taken apart, unless the template looks for it beside the content first.
 */
function separateThought({ role, content, thinking, ...more }, template, marks) {
  const isBeside = thinking !== undefined && (!template || template.includes('reasoning_content'));
  const parts =
    role === 'assistant' && typeof content === 'string' && !isBeside
      ? thoughtOf(content, template, marks.thinking)
      : { content };
  const thought = thinking ?? parts.thought;
  const names = {
    ...(thinking !== undefined && { thinking }),
    ...((isBeside || thought) && { reasoning_content: thought }),
  };
  return { ...more, role, content: parts.content, ...names };
}

/**
 * Templates trim contents before they take thinking out of them, so the space behind it stays: with the sentinel before
 * it it is not the first.
 */
const keepsSpace = (text, point) =>
  typeof text === 'string' && text.trim() && text.trimStart() !== text ? point + text : text;

/**
 * Messages, and tools where there are some, as a template wants them, with the sentinel in place. The content of one
 * with images or videos is a list of parts.
 * @param {{role: string, content: string | {type: string, text?: string}[], thinking?: string, tool_calls?:
 *   object[]}[]} messages
 * @param {string} template its text counts too: a sentinel in it would be removed
 * @param {import('./marks.js').Marks} marks of the model
 * @param {object[]} [tools]
 * @returns {Generator<void, {sentinel: number, messages: any[], tools: any}>}
 */
export function* protect(messages, template, marks, tools) {
  const unused = new Unused();
  const parted = [];
  for (const message of messages) {
    parted.push(separateThought(message, template, marks));
    yield;
  }
  const all = yield* mapSteps([parted, tools], function* ready(text) {
    return yield* unused.seen(yield* composed(text));
  });
  yield* unused.seen(template);
  const sentinel = unused.point;
  const point = String.fromCodePoint(sentinel);
  const [safe, list] = yield* mapSteps(all, (text) => guarded(text, point));
  const isParted = (i) => parted[i].content !== messages[i].content;
  return {
    sentinel,
    messages: safe.map((one, i) => (isParted(i) ? { ...one, content: keepsSpace(one.content, point) } : one)),
    tools: list,
  };
}

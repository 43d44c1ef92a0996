// SPDX-License-Identifier: MIT
// Prepares typed text for a chat template. The file's template puts special tokens between the messages, and no typed
// text may become one. So an unused code point, the sentinel, is put after every `<` of the content before rendering.
// The tokenizer looks for special tokens first, and removes the sentinels afterwards. This works wherever the template
// puts the content, even if a token would be split over two messages.
//
// Thinking inside a content is separated here and not by the template, which would not recognise it with sentinels. All
// functions work in steps (shared/steps.js), since texts can be long.

import { badParam } from '../shared/errors.js';
import { mapSteps } from '../shared/raw-json.js';
import { PART, mapParts } from '../shared/steps.js';

/** Most marks in a row that are normalised: the time grows with their square, and no script has as many. */
const MOST_MARKS = 1000;

/**
 * Characters that may combine with the character before: marks, inner letters of Korean syllables, vowels of Kirat Rai.
 * LETTER matches a character that does not combine.
 */
const MARKS = /[\p{M}\u1160-\u11ff\u{16d40}-\u{16d7f}]+/gu;
const LETTER = /[^\p{M}\u1160-\u11ff\u{16d40}-\u{16d7f}]/gu;

/** A place to cut a text so that both parts normalise on their own: before the next character that does not combine. */
function joint(text, at) {
  if (at >= text.length) return text.length;
  LETTER.lastIndex = at;
  return LETTER.exec(text)?.index ?? text.length;
}

const isMade = (text) => {
  for (const [marks] of text.matchAll(MARKS)) if (marks.length > MOST_MARKS) return true;
  return false;
};

/** Normalises a text to NFC; a text with too many marks in a row stays as it is. @returns {Generator<void, string>} */
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
 * Candidates for the sentinel: first noncharacters, which no text should have, then the private use areas, which are
 * larger than any conversation.
 */
function* sentinels() {
  for (let point = 0xfdd0; point <= 0xfdef; point++) yield point;
  for (let point = 0xf0000; point <= 0xffffd; point++) yield point;
}

/** Finds a code point that does not occur in the texts it has seen. */
export class Unused {
  #used = new Set();

  /** Notes the candidates in a text, and returns the text. @param {string} text @returns {Generator<void, string>} */
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
 * Puts the sentinel after every `<`. (It uses split and join because V8 leaves the result of replaceAll() in pieces,
 * which its first reader must join.)
 */
export const guarded = (text, point) => mapParts(text, (part) => part.split('<').join(`<${point}`));

/** Removes the sentinel. */
export const unguarded = (text, point) => mapParts(text, (part) => part.split(point).join(''));

const withoutFirstLines = (text) => text.replace(/^\n+/, '');

/** Uses a loop, because a pattern would take time by the square of the line ends in the middle. */
function withoutLastLines(text) {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** Templates that separate thinking from the content, and those of them that keep the line ends after it. */
const SPLITS = /(["'])<\/think>\1\s*(?:\)|in\b)/;
const KEEPS_LINES = /split\((["'])<\/think>\1\)\s*\[-1\]\s*-?%\}/;

/**
 * Separates thinking from a content as templates do. The thought ends at the first closing mark, and begins after the
 * last opening mark before that, if there is one. The answer begins after the last closing mark.
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
 * Passes thinking to the template under both of its names, as transformers does. Thinking inside an assistant's content
 * is separated, unless the message has separate thinking that the template reads.
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
 * Templates trim a content before they separate thinking, so the space after the thinking stays. A sentinel before that
 * space keeps it from being trimmed.
 */
const keepsSpace = (text, point) =>
  typeof text === 'string' && text.trim() && text.trimStart() !== text ? point + text : text;

/**
 * Messages, and tools if there are some, in the form that a template takes, with the sentinel in place. The content of
 * a message with images or videos is a list of parts.
 * @param {{role: string, content: string | {type: string, text?: string}[], thinking?: string, tool_calls?:
 *   object[]}[]} messages
 * @param {string} template is searched for candidates too, since a sentinel in it would be removed
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

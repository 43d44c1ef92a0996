// SPDX-License-Identifier: MIT
// From a conversation to token ids. The file's chat template puts special tokens between the messages; no text
// that a person typed may become one. So an unused code point, the sentinel, is put after every `<` of the
// content before rendering; the tokenizer looks for special tokens first and removes sentinels afterwards. That holds
// wherever the template puts the content, and for a token split over two messages as well.
//
// The content's own thinking is taken out here, not by the template: with sentinels in it the template cannot see it.

import { around } from '../engine/around.js';
import { QuernError, badParam } from '../shared/errors.js';
import { jsonText, mapTexts } from '../shared/raw-json.js';
import { CHANNELS, THINKING } from './text.js';

const { open: OPEN, close: CLOSE } = THINKING;

const BEGUN_THOUGHT = new RegExp(`${OPEN}\\s*$`);

/** What Qwen3's own template writes when thinking is switched off. */
const NO_THOUGHT = `${OPEN}\n\n${CLOSE}\n\n`;

/** Sampling defaults of the model cards (Qwen3: "Best Practices"; Qwen3-VL), thinking and not; the latter are quern_defaults()'s too. */
const CARD_THINKING = { temperature: 0.6, topP: 0.95, topK: 20, minP: 0 };
const CARD = { temperature: 0.7, topP: 0.8, topK: 20, minP: 0 };
const CARD_VL_THINKING = { ...CARD_THINKING, temperature: 1 };
const CARD_VL = { ...CARD, presencePenalty: 1.5 };

/** The card's, and before it what the file itself advises. @param {{architecture: string, sampling: object}} facts */
export function defaultsOf({ architecture, sampling }, thinking) {
  const [plain, thoughtful] = architecture.startsWith('qwen3vl') ? [CARD_VL, CARD_VL_THINKING] : [CARD, CARD_THINKING];
  return { ...(thinking ? thoughtful : plain), ...sampling };
}

/** Marks in a row that are put in order: the time for that grows by the square of them, and no script has so many. */
const MOST_MARKS = 1000;

/** A text as NFC has it; one that is made to take long stays what it is. */
export function composed(text) {
  for (const [marks] of text.matchAll(/\p{M}+/gu)) if (marks.length > MOST_MARKS) return text;
  return text.normalize('NFC');
}

/** Noncharacters first: no text should have them. Then private use, of which there is more than any conversation spells out. */
function* sentinels() {
  for (let point = 0xfdd0; point <= 0xfdef; point++) yield point;
  for (let point = 0xf0000; point <= 0xffffd; point++) yield point;
}

/** A code point that a text does not have. @param {string} text */
export function unusedPoint(text) {
  const used = new Set(text.match(/[\u{fdd0}-\u{fdef}\u{f0000}-\u{ffffd}]/gu));
  for (const point of sentinels()) if (!used.has(String.fromCodePoint(point))) return point;
  throw badParam('messages', 'use every private character there is');
}

const withoutFirstLines = (text) => text.replace(/^\n+/, '');

/** No pattern does it: one takes time by the square of lines' ends that are not the last. */
function withoutLastLines(text) {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** Templates that take a message's thinking out of its content; and those of them that leave the lines' ends behind it. */
const SPLITS = /(["'])<\/think>\1\s*(?:\)|in\b)/;
const KEEPS_LINES = /split\((["'])<\/think>\1\)\s*\[-1\]\s*-?%\}/;

/**
 * A content with thinking, taken apart as templates do it: the thought stands before the first mark that ends one, behind the last one that begins
 * one, if there is any; the answer behind the last that ends one.
 */
function thoughtOf(content, template) {
  const [before, ...others] = content.split(CLOSE);
  const after = others.at(-1);
  if (after === undefined || (template && !SPLITS.test(template))) return { content };
  const thought = withoutFirstLines(withoutLastLines(before).split(OPEN).at(-1));
  return { thought, content: KEEPS_LINES.test(template) ? after : withoutFirstLines(after) };
}

/**
 * What was thought is given to templates by both of its names, as transformers does. What an assistant's content has of it is taken apart, unless the
 * template looks for it beside the content first.
 */
function separateThought({ role, content, thinking, ...more }, template) {
  const isBeside = thinking !== undefined && (!template || template.includes('reasoning_content'));
  const parts = role === 'assistant' && typeof content === 'string' && !isBeside ? thoughtOf(content, template) : { content };
  const thought = thinking ?? parts.thought;
  const names = { ...(thinking !== undefined && { thinking }), ...((isBeside || thought) && { reasoning_content: thought }) };
  return { ...more, role, content: parts.content, ...names };
}

/** Templates trim contents before they take thinking out of them, so the space behind it stays: with the sentinel before it it is not the first. */
const keepsSpace = (text, point) => (typeof text === 'string' && text.trim() && text.trimStart() !== text ? point + text : text);

/**
 * Messages, and tools where there are some, as a template wants them, with the sentinel in place. The content of one with images or videos is a list
 * of parts.
 * @param {{role: string, content: string | {type: string, text?: string}[], thinking?: string, tool_calls?: object[]}[]} messages
 * @param {string} template its text counts too: a sentinel in it would be removed
 * @param {object[]} [tools]
 */
export function protect(messages, template, tools) {
  const parted = messages.map((message) => separateThought(message, template));
  const all = mapTexts([parted, tools], composed);
  const sentinel = unusedPoint(template + jsonText(all));
  const point = String.fromCodePoint(sentinel);
  const [guarded, list] = mapTexts(all, (text) => text.replaceAll('<', `<${point}`));
  const isParted = (i) => parted[i].content !== messages[i].content;
  return { sentinel, messages: guarded.map((one, i) => (isParted(i) ? { ...one, content: keepsSpace(one.content, point) } : one)), tools: list };
}

/** ChatML as Qwen3 uses it, for a file without a template. */
export function builtInChat(messages, thinking, spelled = (content) => content, generationPrompt = true) {
  const turns = messages.map(({ role, content }) => `<|im_start|>${role}\n${spelled(content)}<|im_end|>\n`);
  return turns.join('') + (generationPrompt ? `<|im_start|>assistant\n${thinking === false ? NO_THOUGHT : ''}` : '');
}

/**
 * The prompt of a reply, and behind it as much of that reply as there is. Some templates have begun its thinking already.
 * @param {{content: string, reasoning_content?: string}} begun guarded
 */
export function goOn(prompt, { content, reasoning_content: thought = '' }) {
  const isOpen = BEGUN_THOUGHT.test(prompt);
  if (!thought && !isOpen) return prompt + content;
  return `${prompt}${isOpen ? '' : `${OPEN}\n`}${thought}${content && `\n${CLOSE}\n\n${content}`}`;
}

/** Whether a template knows how to switch thinking off; the built-in one does. */
export const knowsThinking = (template) => !template || template.includes('enable_thinking');

/**
 * The channels that a vocabulary has tokens for, with their ids in place of the marks.
 * @param {import('../engine/engine.js').Engine} engine @param {{open: string, close: string, type: string}[]} channels
 */
export function channelsOf(engine, channels) {
  const idOf = (mark) => {
    const ids = engine.tokenize(mark, 'chat');
    return ids.length === 1 ? ids[0] : -1;
  };
  return channels.map((channel) => ({ ...channel, open: idOf(channel.open), close: idOf(channel.close) }))
    .filter(({ open, close }) => open >= 0 && close >= 0);
}

/**
 * @typedef {object} Prompt what a reply comes from
 * @property {Int32Array} ids
 * @property {import('./text.js').Channel[]} channels that the reply can have beside its text
 * @property {import('./placeholders.js').Places} [places] of its images and videos, where it has some
 * @property {object | null} inside the one of them in which the prompt ends, as templates of models that always think make it
 * @property {{open: number}} [first] the channel with which the reply is to begin
 * @property {{temperature: number, topP: number, topK: number, minP: number, presencePenalty?: number}} defaults of sampling
 * @property {string} [begun] what there is of its text already, as it was given
 * @property {number} [dropped] messages that were left out of it
 * @property {Uint8Array[]} [media] ids of its images and pairs of frames, in the order of their pads (engine/media.js)
 */

export class Chat {
  #engine;
  #template;
  #toolTemplate;      // where the file has another one for conversations with tools
  #render;
  #channels;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {(template: string, json: string) => Promise<string>} render variables as JSON, whose numbers and orders stay what they are
   */
  constructor(engine, render) {
    this.#engine = engine;
    this.#template = engine.chatTemplate();
    this.#toolTemplate = engine.chatTemplate(true) || this.#template;
    this.#render = render;
    this.#channels = channelsOf(engine, CHANNELS);
  }

  /** Whether thinking can be switched on and off. */
  get canThink() {
    return knowsThinking(this.#template);
  }

  /**
   * The prompt of the next reply, without thinking unless that is wanted; with `continue` of the rest of the last message. With `mustFit` a text that
   * is far too long is refused before it is tokenized. `places`: of the messages' images and videos; `numberImages`: they are counted aloud.
   * `tools`: of a conversation that has some. Without `generationPrompt` no reply is begun.
   * @param {{thinking?: boolean, continue?: boolean, numberImages?: boolean, mustFit?: boolean, generationPrompt?: boolean,
   *   places?: import('./placeholders.js').Places, tools?: import('./tools.js').Tools}} [options]
   * @returns {Promise<Prompt>}
   */
  async prompt(messages, options = {}) {
    const { thinking = false, continue: goesOn = false, numberImages = false, mustFit = false, generationPrompt = true, places, tools } = options;
    const template = tools?.list ? this.#toolTemplate : this.#template;
    const { sentinel, messages: guarded, tools: list } = protect(tools?.messages ?? messages, template, tools?.list);
    const begun = goesOn ? guarded.pop() : null;
    const isBegun = Boolean(begun?.content || begun?.reasoning_content);
    const thinks = isBegun ? Boolean(begun.reasoning_content) : thinking;
    const prompt = template
      ? await this.#render(template, jsonText({
        messages: guarded, tools: list ?? null, documents: null, add_generation_prompt: generationPrompt, enable_thinking: thinks,
        add_vision_id: numberImages, ...this.#engine.facts.specialTokens,
      }))
      : builtInChat(tools?.spelled(guarded, list) ?? guarded, thinks, places?.speller(numberImages), generationPrompt);
    const whole = begun ? goOn(prompt, begun) : prompt;
    const text = places?.fill(whole) ?? whole;
    const unguarded = (guardedText) => guardedText.replaceAll(String.fromCodePoint(sentinel), '');
    if (mustFit) refuseHopeless(this.#engine, unguarded(text).length);
    const plain = this.#engine.tokenize(text, 'chat', sentinel);
    const ids = places?.grow(plain) ?? plain;
    const inside = this.#channels.find(({ open, close }) => ids.lastIndexOf(open) > ids.lastIndexOf(close)) ?? null;
    const willThink = inside?.type === THINKING.type || (thinking && this.canThink);
    const channels = tools ? [...this.#channels, ...channelsOf(this.#engine, tools.channels)] : this.#channels;
    const first = thinking && this.canThink && !inside && !isBegun ? this.#channels.find(({ type }) => type === THINKING.type) : undefined;
    return { ids, places, channels, inside, first, begun: unguarded(begun?.content ?? ''), defaults: defaultsOf(this.#engine.facts, willThink) };
  }

  /** Text or tokens to go on from, in which nothing is a mark. @param {string | Int32Array} given @returns {Prompt} */
  plain(given) {
    if (typeof given === 'string') refuseHopeless(this.#engine, given.length);
    const ids = typeof given === 'string' ? around(this.#engine.tokenize(given), this.#engine.facts.added) : given;
    if (ids.length === 0) throw new QuernError('use/empty', 'There is nothing to do: the prompt is empty.');
    return { ids, channels: [], inside: null, defaults: defaultsOf(this.#engine.facts, false) };
  }
}

/** Refuses a text that cannot fit however well it is tokenized, before that work: pasted files can be huge. */
function refuseHopeless(engine, letters) {
  const limit = engine.contextSize;
  if (letters < limit) return;
  const atLeast = Math.ceil(letters / engine.longestToken());
  if (atLeast >= limit) throw tooLong(atLeast, limit, 'at least ');
}

export function tooLong(found, limit, about = '') {
  const message = `The prompt has ${about}${found} tokens, but the context holds ${limit}, the reply included.`;
  return new QuernError('use/context', message, { detail: { found, limit } });
}

/** Pixels of a token; of a video's in both frames together. And tokens of an image on which anything can be seen. */
const PIXELS = 1024;
const LEAST = 4;

/** The same of a prompt that is whole; its images might be smaller. @param {Prompt} prompt */
export function tooLongWith({ ids: { length }, places }, limit) {
  const error = tooLong(length, limit);
  if (!places) return error;
  const each = Math.floor((limit - 1 - (length - places.tokens)) / places.order.length);
  if (each < LEAST) return error;
  const maxPixels = each * PIXELS;
  const message = `${error.message} ${places.tokens} of them are of images, which would fit with a maxPixels of ${maxPixels} for each.`;
  return new QuernError('use/context', message, { detail: { ...error.detail, maxPixels } });
}

// SPDX-License-Identifier: MIT
// From a conversation to token ids: typed text is guarded (guard.js), the file's chat template puts special tokens
// between the messages, and the tokenizer recognises only these. All work is done in the turns of the request's owner.

import { around } from '../engine/around.js';
import { QuernError } from '../shared/errors.js';
import { atOnce } from '../shared/steps.js';
import { protect, unguarded } from './guard.js';
import { jsonSteps } from '../shared/raw-json.js';
import { MARKS } from './marks.js';

/**
 * Sampling defaults: the values in the model's files, else those of the model card.
 * @param {{card: Record<'plain' | 'thinking' | 'images', object>, sampling: object}} facts
 * @param {'plain' | 'thinking' | 'images'} kind of reply
 */
export const defaultsOf = ({ card, sampling }, kind) => ({ ...card[kind], ...sampling });

/**
 * The prompt for a file without a template. Without thinking, a reply begins with an empty thought, as in the templates
 * of the family.
 * @param {import('./marks.js').Marks} marks
 */
export function builtInChat(marks, messages, thinking, spelled = (content) => content, generationPrompt = true) {
  const { thinking: { open, close }, message, reply } = marks;
  const turns = messages.map(({ role, content }) => message(role, spelled(content)));
  return turns.join('') + (generationPrompt ? `${reply}${thinking === false ? `${open}\n\n${close}\n\n` : ''}` : '');
}

/**
 * Appends the beginning of a reply to its prompt. Some templates begin the thinking in the prompt.
 * @param {import('./marks.js').Marks} marks
 * @param {{content: string, reasoning_content?: string}} begun guarded
 */
export function goOn({ thinking: { open, close } }, prompt, { content, reasoning_content: thought = '' }) {
  const isOpen = prompt.trimEnd().endsWith(open);
  if (!thought && !isOpen) return prompt + content;
  return `${prompt}${isOpen ? '' : `${open}\n`}${thought}${content && `\n${close}\n\n${content}`}`;
}

/** Whether a template can switch thinking off; the built-in one can. */
export const knowsThinking = (template) => !template || template.includes('enable_thinking');

/**
 * Channels whose marks are tokens of the vocabulary, or that have none, with the tokens' ids instead of the marks.
 * @param {import('../engine/engine.js').Engine} engine @param {{open: string, close: string, type: string}[]} channels
 */
export function channelsOf(engine, channels) {
  const idOf = (mark) => {
    const ids = engine.tokenize(mark, 'chat');
    return ids.length === 1 ? ids[0] : -1;
  };
  return channels.map((channel) => ({ ...channel, open: idOf(channel.open), close: idOf(channel.close) }))
    .filter(({ open, close, bare }) => bare || (open >= 0 && close >= 0));
}

/**
 * @typedef {object} Prompt the prompt of a reply
 * @property {Int32Array} ids
 * @property {import('./text.js').Channel[]} channels that the reply can have beside its text
 * @property {import('./placeholders.js').Places} [places] of its images and videos, if it has any
 * @property {object | null} inside the channel in which the prompt ends, as with templates of models that always think
 * @property {{open: number}} [first] the channel with which the reply is to begin
 * @property {{temperature: number, topP: number, topK: number, minP: number, presencePenalty?: number}} defaults
 *   sampling defaults
 * @property {string} [begun] the given beginning of the reply's text
 * @property {number} [dropped] number of messages that were left out
 * @property {number[]} [marks] lengths at which a model with states remembers its state (snapshots.js)
 * @property {Uint8Array[]} [media] ids of its images and pairs of frames, in the order of their pads (engine/media.js)
 */

/**
 * Does the work for a request a little at a time, beside that of others (worker/asker.js).
 * @typedef {object} Asker
 * @property {<T>(work: () => T) => Promise<T>} run
 * @property {<T>(steps: Iterator<unknown, T, void>) => Promise<T>} through
 * @property {(text: string, mode?: 'plain' | 'text' | 'chat', sentinel?: number) => Promise<Int32Array>} tokens
 */

/** Works at once: no other request waits. @param {import('../engine/engine.js').Engine} engine @returns {Asker} */
const alone = (engine) => ({
  run: async (work) => work(),
  through: async (steps) => atOnce(steps),
  tokens: async (...given) => engine.tokenize(...given),
});

export class Chat {
  #engine;
  #marks;
  #template;
  #toolTemplate;      // the template for conversations with tools, which may be the same
  #render;
  #channels;
  #thinkingDefaults = new Map();    // by template

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {(template: string, json: string, asker: Asker) => Promise<string>} render takes variables as JSON, which
   *   keeps numbers and orders
   */
  constructor(engine, render) {
    this.#engine = engine;
    this.#marks = MARKS[engine.facts.marks];
    this.#template = engine.chatTemplate();
    this.#toolTemplate = engine.chatTemplate(true);
    this.#render = render;
    this.#channels = channelsOf(engine, [this.#marks.thinking]);
  }

  /** Whether thinking can be switched on and off. */
  get canThink() {
    return this.#channels.length > 0 && knowsThinking(this.#template);
  }

  /**
   * The prompt of the next reply. thinking: with or without thinking, by default as defaultThinking() says;
   * continue: the reply continues the last message; mustFit: a text that is far too long is refused before it is
   * tokenized; places: of the messages' images and videos; numberImages: the text numbers them; tools: of a
   * conversation with tools; generationPrompt: false begins no reply.
   * @param {{thinking?: boolean, continue?: boolean, numberImages?: boolean, mustFit?: boolean, generationPrompt?:
   *   boolean, places?: import('./placeholders.js').Places, tools?: import('./tools.js').Tools}} [options]
   * @param {Asker} [asker]
   * @returns {Promise<Prompt>}
   */
  async prompt(messages, options = {}, asker = alone(this.#engine)) {
    const { thinking, continue: goesOn = false, mustFit = false, places, tools } = options;
    const template = tools?.list ? this.#toolTemplate : this.#template;
    const given = protect(tools?.messages ?? messages, template, this.#marks, tools?.list);
    const { sentinel, messages: guarded, tools: list } = await asker.through(given);
    const begun = goesOn ? guarded.pop() : null;
    const isBegun = Boolean(begun?.content || begun?.reasoning_content);
    const asked = isBegun ? Boolean(begun.reasoning_content) : thinking;
    const thinks = asked ?? await this.#defaultThinking(template, asker);
    const prompt = await this.#text(template, { messages: guarded, list, thinks }, options, asker);
    const whole = begun ? goOn(this.#marks, prompt, begun) : prompt;
    const text = places?.fill(whole) ?? whole;
    const asTyped = (guardedText) => asker.through(unguarded(guardedText, String.fromCodePoint(sentinel)));
    if (mustFit && text.length >= this.#engine.contextSize) refuseHopeless(this.#engine, (await asTyped(text)).length);
    const plain = await asker.tokens(text, 'chat', sentinel);
    const ids = places?.grow(plain) ?? plain;
    const inside = this.#channels.find(({ open, close }) => ids.lastIndexOf(open) > ids.lastIndexOf(close)) ?? null;
    const willThink = inside?.type === 'thinking' || (thinking && this.canThink);
    const channels = tools ? [...this.#channels, ...channelsOf(this.#engine, tools.channels)] : this.#channels;
    const first =
      thinking && this.canThink && !inside && !isBegun
        ? this.#channels.find(({ type }) => type === 'thinking')
        : undefined;
    return {
      ids,
      places,
      channels,
      inside,
      first,
      begun: await asTyped(begun?.content ?? ''),
      defaults: defaultsOf(this.#engine.facts, willThink ? 'thinking' : places ? 'images' : 'plain'),
    };
  }

  /**
   * What a template is told about thinking if the caller has no wish: nothing if it has a default of its own, which it
   * marks at the end of a prompt (Qwen3.5); else not to think, since it would leave the choice to the model (Qwen3).
   */
  async #defaultThinking(template, asker) {
    if (knowsThinking(template) && !this.#thinkingDefaults.has(template)) {
      const messages = [{ role: 'user', content: 'Hi' }];
      const text = await this.#text(template, { messages }, {}, asker).catch((error) => {
        if (error instanceof QuernError) return '';
        throw error;
      });
      const { open, close } = this.#marks.thinking;
      const isMarked = [open, close].some((mark) => text.trimEnd().endsWith(mark));
      this.#thinkingDefaults.set(template, isMarked ? undefined : false);
    }
    return this.#thinkingDefaults.get(template);
  }

  /** The text of a conversation by its template, or by the built-in one of the model's family. */
  async #text(template, { messages, list, thinks }, options, asker) {
    const { numberImages = false, generationPrompt = true, places, tools } = options;
    if (!template) {
      const { added, specialTokens } = this.#engine.facts;
      const said = tools?.spelled(messages, list) ?? messages;
      const first = this.#marks.begins && added.before.length > 0 ? specialTokens.bos_token ?? '' : '';
      const wish = this.#channels.length > 0 ? thinks : undefined;
      return first + builtInChat(this.#marks, said, wish, places?.speller(numberImages), generationPrompt);
    }
    const variables = {
      messages,
      tools: list ?? null,
      documents: null,
      add_generation_prompt: generationPrompt,
      enable_thinking: thinks,
      add_vision_id: numberImages,
      ...this.#engine.facts.specialTokens,
    };
    return this.#render(template, await asker.through(jsonSteps(variables)), asker);
  }

  /**
   * The prompt of a plain text or of tokens, in which nothing is a mark.
   * @param {string | Int32Array} given @param {Asker} [asker]
   * @returns {Promise<Prompt>}
   */
  async plain(given, asker = alone(this.#engine)) {
    if (typeof given === 'string') refuseHopeless(this.#engine, given.length);
    const ids = typeof given === 'string' ? around(await asker.tokens(given), this.#engine.facts.added) : given;
    if (ids.length === 0) throw new QuernError('use/empty', 'There is nothing to do: the prompt is empty.');
    return { ids, channels: [], inside: null, defaults: defaultsOf(this.#engine.facts, 'plain') };
  }
}

/** Refuses a text that cannot fit, however it is tokenized, before that work: pasted files can be huge. */
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

/** Pixels of a token (of a video: in both frames together), and the fewest tokens of a useful image. */
const PIXELS = 1024;
const LEAST = 4;

/** The error for a complete prompt, which says whether smaller images would fit. @param {Prompt} prompt */
export function tooLongWith({ ids: { length }, places }, limit) {
  const error = tooLong(length, limit);
  if (!places) return error;
  const each = Math.floor((limit - 1 - (length - places.tokens)) / places.order.length);
  if (each < LEAST) return error;
  const maxPixels = each * PIXELS;
  const message = `${error.message} ${places.tokens} of them are of images, which would fit with a maxPixels of ${maxPixels} for each.`;
  return new QuernError('use/context', message, { detail: { ...error.detail, maxPixels } });
}

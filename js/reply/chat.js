// SPDX-License-Identifier: MIT
// From a conversation to token ids. The file's chat template puts special tokens between the messages; no text
// that a person typed may become one. So an unused code point, the sentinel, is put after every `<` of the
// content before rendering; the tokenizer looks for special tokens first and removes sentinels afterwards. That holds
// wherever the template puts the content, and for a token split over two messages as well.
//
// The content's own thinking is taken out here, not by the template: with sentinels in it the template cannot see it.

import { QuernError, badParam } from '../shared/errors.js';

const THOUGHT = /^\s*<think>\n*([\s\S]*?)\n*<\/think>\n*/;

/** What Qwen3's own template writes when thinking is switched off. */
const NO_THOUGHT = '<think>\n\n</think>\n\n';

/** Noncharacters first: no text should have them. Then private use, of which there is more than any conversation spells out. */
function* sentinels() {
  for (let point = 0xfdd0; point <= 0xfdef; point++) yield point;
  for (let point = 0xf0000; point <= 0xffffd; point++) yield point;
}

function unusedPoint(texts) {
  for (const point of sentinels()) {
    const letter = String.fromCodePoint(point);
    if (!texts.some((text) => text.includes(letter))) return point;
  }
  throw badParam('messages', 'use every private character there is, so none is left to mark typed text with');
}

/** An assistant's message that still has its thinking in the content, as plain text, is taken apart. */
function separateThought({ role, content, thinking }) {
  const [whole, thought] = (role === 'assistant' && !thinking && THOUGHT.exec(content)) || [''];
  return { role, content: content.slice(whole.length), thinking: thinking ?? thought };
}

/**
 * Messages as a template wants them, with the sentinel in place.
 * @param {{role: string, content: string, thinking?: string}[]} messages
 * @param {string} template its text counts too: a sentinel in it would be removed
 */
export function protect(messages, template) {
  const parts = messages.map(separateThought).map(({ role, content, thinking = '' }) => (
    { role, content: content.normalize('NFC'), thinking: thinking.normalize('NFC') }));
  const sentinel = unusedPoint([template, ...parts.flatMap(({ content, thinking }) => [content, thinking])]);
  const mark = `<${String.fromCodePoint(sentinel)}`;
  const guard = (text) => text.replaceAll('<', mark);
  const guarded = parts.map(({ role, content, thinking }) => (
    { role, content: guard(content), ...(thinking && { reasoning_content: guard(thinking) }) }));
  return { sentinel, messages: guarded };
}

/** ChatML as Qwen3 uses it, for a file without a template. */
export function builtInChat(messages, thinking) {
  const turns = messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`);
  return `${turns.join('')}<|im_start|>assistant\n${thinking === false ? NO_THOUGHT : ''}`;
}

/**
 * The prompt of a reply, and behind it as much of that reply as there is. Some templates have begun its thinking already.
 * @param {{content: string, reasoning_content?: string}} begun guarded
 */
export function goOn(prompt, { content, reasoning_content: thought = '' }) {
  const isOpen = /<think>\s*$/.test(prompt);
  if (!thought && !isOpen) return prompt + content;
  return `${prompt}${isOpen ? '' : '<think>\n'}${thought}${content && `\n</think>\n\n${content}`}`;
}

/** Whether a template knows how to switch thinking off; the built-in one does. */
export const knowsThinking = (template) => !template || template.includes('enable_thinking');

export class Chat {
  #engine;
  #template;
  #render;

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {(template: string, variables: object) => Promise<string>} render
   */
  constructor(engine, render) {
    this.#engine = engine;
    this.#template = engine.chatTemplate();
    this.#render = render;
  }

  get template() {
    return this.#template;
  }

  /**
   * The prompt of the next reply, without thinking unless that is wanted; with `continue` of the rest of the last message. With `mustFit` a text that
   * is far too long is refused before it is tokenized.
   * @returns {Promise<{ids: Int32Array, startsThinking: boolean}>}
   */
  async prompt(messages, { thinking = false, continue: goesOn = false, mustFit = false } = {}) {
    const { sentinel, messages: guarded } = protect(messages, this.#template);
    const begun = goesOn ? guarded.pop() : null;
    const thinks = begun?.content || begun?.reasoning_content ? Boolean(begun.reasoning_content) : thinking;
    const prompt = this.#template
      ? await this.#render(this.#template, { messages: guarded, add_generation_prompt: true, enable_thinking: thinks })
      : builtInChat(guarded, thinks);
    const text = begun ? goOn(prompt, begun) : prompt;
    if (mustFit) refuseHopeless(this.#engine, text.replaceAll(String.fromCodePoint(sentinel), '').length);
    const ids = this.#engine.tokenize(text, 'chat', sentinel);
    return { ids, startsThinking: this.#opensThought(ids) };
  }

  /** Whether the prompt ends inside thinking, as templates of models that always think make it. */
  #opensThought(ids) {
    const { open, close } = this.#engine.thinkingMarks();
    return open >= 0 && ids.lastIndexOf(open) > ids.lastIndexOf(close);
  }
}

/** Refuses a text that cannot fit however well it is tokenized, before that work: pasted files can be huge. */
export function refuseHopeless(engine, letters) {
  const limit = engine.contextSize;
  if (letters < limit) return;
  const atLeast = Math.ceil(letters / engine.longestToken());
  if (atLeast >= limit) throw tooLong(atLeast, limit, 'at least ');
}

export function tooLong(found, limit, about = '') {
  const message = `The prompt has ${about}${found} tokens, but the context holds ${limit}, the reply included.`;
  return new QuernError('use/context', message, { detail: { found, limit } });
}

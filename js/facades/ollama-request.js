// SPDX-License-Identifier: MIT
// Converts requests of Ollama's POST /api/chat and /api/generate to those of a chat. Their limits are in `options`;
// options for the machine are ignored.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { asked, renamed, same } from './dialect.js';
import { isNothing } from './openai-request.js';
import { unsupported } from './openai-refused.js';

/** This API's options by the fields of a chat. */
const OPTIONS = {
  ...same('temperature', 'top_p', 'top_k', 'min_p', 'seed', 'stop'),
  ...same('repeat_penalty', 'presence_penalty', 'frequency_penalty'),
  num_predict: 'max_tokens',
};

const FIELDS = same('tools', 'logprobs', 'top_logprobs', 'stream');

/** Options that would change an answer and are not supported, each with the value that does nothing. */
const UNSUPPORTED_OPTIONS = { mirostat: 0, typical_p: 1, tfs_z: 1 };
const UNSUPPORTED = { template: isNothing, suffix: isNothing, context: isNothing };

/** This API's names for fields of a chat. */
const TERMS = {
  ...Object.fromEntries(Object.entries(OPTIONS).map(([option, field]) => [field, `options.${option}`])),
  'chat_template_kwargs.enable_thinking': 'think',
  reasoning_effort: 'think', 'response_format.json_schema.schema': 'format',
  response_format: 'format',
};

function optionsOf({ options }) {
  if (options == null) return {};
  if (!isRecord(options)) throw badParam('options', 'must be an object');
  for (const [name, nothing] of Object.entries(UNSUPPORTED_OPTIONS)) {
    if (options[name] != null && options[name] !== nothing)
      throw unsupported(name, 'in options is not supported by this version');
  }
  const chat = renamed(options, OPTIONS);
  const isEndless = chat.max_tokens < 0;      // -1 and -2: until the context is full
  return isEndless ? { ...chat, max_tokens: undefined } : chat;
}

function formatOf({ format }) {
  if (format == null || format === '') return {};
  if (format === 'json') return { response_format: { type: 'json_object' } };
  if (!isRecord(format)) throw badParam('format', "must be 'json' or a JSON Schema");
  return { response_format: { type: 'json_schema', json_schema: { name: 'format', schema: format } } };
}

/** Whether to think, or how much. */
function thinkingOf({ think }) {
  if (think == null) return {};
  return typeof think === 'string' ? { reasoning_effort: think } : { chat_template_kwargs: { enable_thinking: think } };
}

/** A text with images in base64. The format of an image follows from its bytes. */
function contentOf(text, images, path) {
  if (images == null || images.length === 0) return text;
  const areTexts = Array.isArray(images) && images.every((image) => typeof image === 'string');
  if (!areTexts) throw badParam(`${path}images`, 'must be an array of images in base64');
  const addressOf = (image) => (image.startsWith('data:') ? image : `data:image/any;base64,${image}`);
  const parts = images.map((image) => ({ type: 'image_url', image_url: { url: addressOf(image) } }));
  return [...parts, ...text ? [{ type: 'text', text }] : []];
}

/** A queue of ids, each of which is used once. */
class Row {
  #ids = [];
  #at = 0;

  push(id) { this.#ids.push(id); }

  /** Returns the first id that is still open. */
  first(open) {
    while (this.#at < this.#ids.length && !open.has(this.#ids[this.#at])) this.#at++;
    return this.#ids[this.#at];
  }
}

/** Calls have no ids in this API: a result belongs to a call by the tool's name, or else by the order. */
class Calls {
  #open = new Set();
  #all = new Row();
  #named = new Map();     // queues by name
  #count = 0;

  of(calls, path) {
    if (!Array.isArray(calls)) throw badParam(`${path}.tool_calls`, 'must be an array');
    this.#open = new Set();
    this.#all = new Row();
    this.#named = new Map();
    return calls.map((call) => {
      const { name, arguments: given } = isRecord(call) && isRecord(call.function) ? call.function : {};
      const id = call?.id ?? `call_${this.#count++}`;
      this.#open.add(id);
      this.#all.push(id);
      if (!this.#named.has(name)) this.#named.set(name, new Row());
      this.#named.get(name).push(id);
      return { id, type: 'function', function: { name, arguments: given ?? {} } };
    });
  }

  /** Returns the call that a result belongs to. */
  answered({ tool_call_id: given, tool_name: name }) {
    const id = given ?? this.#named.get(name)?.first(this.#open) ?? this.#all.first(this.#open);
    this.#open.delete(id);
    return id;
  }
}

function messagesOf({ messages }, origins) {
  if (!Array.isArray(messages)) throw badParam('messages', 'must be an array of messages');
  const calls = new Calls();
  return messages.map((message, i) => {
    const path = `messages[${i}]`;
    origins.push({ path });
    if (!isRecord(message)) throw badParam(path, 'must be an object with role and content');
    const { role, content, images, thinking, tool_calls: made } = message;
    return {
      role, content: contentOf(content ?? '', images, `${path}.`), ...(thinking && { reasoning_content: thinking }),
      ...(made?.length > 0 && { tool_calls: calls.of(made, path) }),
      ...(role === 'tool' && { tool_call_id: calls.answered(message) }),
    };
  });
}

/** Fields that both requests have. They stream by default. */
const common = (body) => ({
  stream: true,
  ...renamed(body, FIELDS),
  ...optionsOf(body),
  ...formatOf(body),
  ...thinkingOf(body),
});

const of = (messagesIn) => (body) => asked(body, {
  unsupported: UNSUPPORTED,
  terms: TERMS,
  translate: (given, origins) => ({ ...common(given), messages: messagesIn(given, origins) }),
});

/** @type {(body: any) => import('./openai-request.js').Request} for POST /api/chat */
export const ollamaChat = of(messagesOf);

/** @type {(body: any) => import('./openai-request.js').Request} for POST /api/generate */
export const ollamaGenerate = of(({ system, prompt, images }, origins) => {
  const first = system ? [{ role: 'system', content: system }] : [];
  origins.push(...first.map(() => ({ path: 'system' })), { path: 'prompt' });
  return [...first, { role: 'user', content: contentOf(prompt, images, '') }];
});

/**
 * For POST /api/generate with `raw`: the model continues the prompt without a template.
 * @param {{endTokens: readonly number[]}} info
 */
export function ollamaRaw(body, info) {
  const translate = (given) => ({ ...common(given), prompt: given.prompt });
  const request = asked(body, { unsupported: UNSUPPORTED, terms: TERMS, translate, info });
  const { num_predict: most } = body.options ?? {};
  return most == null || most < 0 ? { ...request, options: { ...request.options, maxTokens: undefined } } : request;
}

// SPDX-License-Identifier: MIT
// Reads a request of the OpenAI API: messages or prompts, options, the number of choices, whether to stream. Fields
// that would change the answer and cannot be honoured are refused by name; unknown fields are ignored, as other servers
// do. The model itself checks values (options.js), and openai-error.js converts its messages to the request's terms.

import { THOUGHTS } from '../page/messages.js';
import { QuernError, badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { modern } from './openai-legacy.js';
import { limitsOf, logprobsOf } from './openai-limits.js';
import { unsupported } from './openai-refused.js';
import { Arguments, callShape, toolFields, toolOptions } from './openai-tools.js';

/** Most choices of a prompt, choices of a request, and sizes that no honest request has. */
export const MOST = { n: 8, choices: 64, messages: 10_000, biases: 1000 };

/** Tokens of a completion without a limit: the API's own default. Chats have none. */
const COMPLETION_TOKENS = 16;

/** The request's field for each option. If there are two, the last one given counts. */
export const FIELDS = {
  maxTokens: ['max_tokens', 'max_completion_tokens'],
  temperature: ['temperature'],
  topP: ['top_p'],
  topK: ['top_k'],
  minP: ['min_p'],
  stop: ['stop'],
  seed: ['seed'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
  repeatPenalty: ['repeat_penalty'],
  logitBias: ['logit_bias'],
  openObjects: ['open_objects'],
  priority: ['priority'],
};

/** Fields whose values are not those of the options; for names in errors. */
export const CHAT_FIELDS = {
  toolChoice: ['tool_choice'], thinking: ['chat_template_kwargs.enable_thinking'], continue: ['continue_final_message'],
  schema: ['response_format', 'json_schema', 'guided_json', 'structured_outputs'], json: ['response_format'],
  regex: ['guided_regex', 'structured_outputs'], choices: ['guided_choice', 'structured_outputs'],
  grammar: ['grammar', 'guided_grammar', 'structured_outputs'],
};

export const isNothing = (value) =>
  value === false || value === 0 || value === '' || (Array.isArray(value) && value.length === 0);

/** Fields that are not supported, each with a test for values that do nothing: by default `false`, 0, '' and []. */
const UNSUPPORTED = {
  modalities: (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text', audio: () => false,
  suffix: isNothing, echo: isNothing, best_of: (value) => value === 1,
};

/** @param {Record<string, (value: any) => boolean>} [fields] of a request in another API's form */
export function refuseUnsupported(body, fields = UNSUPPORTED) {
  for (const [field, asksNothing] of Object.entries(fields)) {
    if (body[field] != null && !asksNothing(body[field])) throw unsupported(field);
  }
}

export function flag(body, field) {
  if (body[field] != null && typeof body[field] !== 'boolean') throw badParam(field, 'must be true or false');
  return body[field] ?? false;
}

function choicesOf({ n }) {
  if (n == null) return 1;
  if (!Number.isInteger(n) || n < 1 || n > MOST.n) throw badParam('n', `must be a whole number from 1 to ${MOST.n}`);
  return n;
}

// --- options ---

/** Values with a special meaning: -1 is any seed, or no limit, in requests of llama.cpp's clients. */
const MEANINGS = { topP: [0, 1e-6], topK: [-1, 0], seed: [-1, undefined], maxTokens: [-1, undefined] };

/** The API's own limits of the temperature, with its codes. */
const WARM = { least: 0, most: 2, below: 'decimal_below_min_value', above: 'decimal_above_max_value' };

function checkTemperature({ temperature }) {
  const { least, most, below, above } = WARM;
  if (typeof temperature !== 'number' || (temperature >= least && temperature <= most)) return;
  const detail = { param: 'temperature', reason: temperature < least ? below : above };
  throw new QuernError('use/param', `temperature must be a number from ${least} to ${most}, but is ${temperature}.`, {
    detail,
  });
}

function thinkingOf({ reasoning_effort: effort, chat_template_kwargs: kwargs }) {
  if (kwargs != null && !isRecord(kwargs)) throw badParam('chat_template_kwargs', 'must be an object');
  if (effort != null && typeof effort !== 'string') throw badParam('reasoning_effort', 'must be a text');
  return kwargs?.enable_thinking ?? (effort == null ? undefined : effort !== 'none');
}

/** Options that are plain values of fields. */
function optionsOf(body) {
  const options = {};
  for (const [option, fields] of Object.entries(FIELDS)) {
    const value = fields.map((field) => body[field]).findLast((given) => given != null);
    const [special, meaning] = MEANINGS[option] ?? [];
    if (value != null) options[option] = value === special ? meaning : value;
  }
  // in vLLM small numbers come first
  if (Number.isInteger(options.priority)) options.priority = options.priority > 0 ? 'background' : 'normal';
  if (isRecord(options.logitBias) && Object.keys(options.logitBias).length > MOST.biases) {
    throw badParam('logit_bias', `has more than ${MOST.biases} tokens`);
  }
  return options;
}

/** Reads the fields that all requests have. @param {any} body parsed JSON @param {'chat' | 'text'} kind */
function common(body, kind) {
  if (!isRecord(body)) throw badParam('The body', 'must be a JSON object');
  refuseUnsupported(body);
  checkTemperature(body);
  if (body.stream_options != null && !isRecord(body.stream_options))
    throw badParam('stream_options', 'must be an object');
  const options = { ...optionsOf(body), ...limitsOf(body), ...logprobsOf(body, kind) };
  const told = { includeUsage: body.stream_options?.include_usage === true, timings: flag(body, 'timings_per_token') };
  return { n: choicesOf(body), stream: flag(body, 'stream'), ...told, options };
}

// --- messages ---

const ROLES = { developer: 'system' };

/** Resolutions of images; unknown ones are auto. */
const DETAILS = { low: 'low', auto: 'auto', high: 'high', original: 'high' };

/** An image must be part of the request: with an address, clients could choose what this machine fetches. */
function imageOf({ image_url: image }, path) {
  const { url, detail } = isRecord(image) ? image : { url: image };
  if (typeof url !== 'string' || !/^data:image\//i.test(url)) {
    throw unsupported(
      `${path}.image_url`,
      'must be a data: address; nothing is fetched for requests',
    );
  }
  if (detail != null && typeof detail !== 'string') throw badParam(`${path}.image_url.detail`, 'must be a string');
  return {
    type: 'image',
    image: url,
    ...(detail != null && { detail: Object.hasOwn(DETAILS, detail) ? DETAILS[detail] : 'auto' }),
  };
}

/** @returns {{type: string, text?: string, image?: string}} */
function partOf(part, path) {
  if (!isRecord(part)) throw badParam(path, 'must be an object with a type');
  if (part.type === 'image_url') return imageOf(part, path);
  if (part.type !== 'text' && part.type !== 'refusal') {
    throw unsupported(`${path}.type`, 'must be text or image_url; nothing else is supported by this version');
  }
  const text = part[part.type];
  if (typeof text !== 'string') throw badParam(`${path}.${part.type}`, 'must be a string');
  return { type: 'text', text };
}

/** A text, or parts. An assistant's message may be empty, or a refusal. */
function contentOf({ content, role, refusal }, path) {
  if (content == null && role === 'assistant') return refusal ?? '';
  if (!Array.isArray(content)) return content;
  const parts = content.map((part, i) => partOf(part, `${path}.content[${i}]`));
  const texts = parts.map(({ text }) => text);
  return texts.includes(undefined) ? parts : texts.join('');
}

function messageOf(message, path, written) {
  if (!isRecord(message)) throw badParam(path, 'must be an object with role and content');
  const { role } = message;
  const thoughts = Object.fromEntries(
    THOUGHTS.filter((name) => message[name] != null).map((name) => [name, message[name]]),
  );
  const known = typeof role === 'string' && Object.hasOwn(ROLES, role) ? ROLES[role] : role;
  return { role: known, content: contentOf(message, path), ...thoughts, ...toolFields(message, path, written) };
}

function messagesOf({ messages }) {
  if (!Array.isArray(messages)) throw badParam('messages', 'must be an array of messages');
  const written = new Arguments();
  return messages.map((message, i) => messageOf(message, `messages[${i}]`, written));
}

/**
 * @typedef {object} Request
 * @property {boolean} stream
 * @property {boolean} includeUsage whether the stream ends with the usage
 * @property {boolean} timings whether the answer has timings
 * @property {number} n choices of each prompt
 * @property {any} options of chat() or complete()
 * @property {import('./openai-tools.js').CallShape} [shape] form of a chat's calls
 * @property {import('../index.d.ts').Message[]} [messages]
 * @property {(string | number[])[]} [prompts]
 * @property {boolean} [echo] whether answers begin with their prompts
 * @property {{made: number, wanted: number, showsLogprobs: boolean}} [best] numbers of choices, to select the best ones
 */

/** @returns {Request} for POST /chat/completions */
export function chatRequest(given) {
  const { options, ...request } = common(given, 'chat');
  if (Array.isArray(given.messages) && given.messages.length > MOST.messages)
    throw badParam('messages', `are more than ${MOST.messages}`);
  const body = modern(given);
  const asked = { ...options, ...toolOptions(body), thinking: thinkingOf(body), continue: body.continue_final_message };
  return { ...request, messages: messagesOf(body), options: asked, shape: callShape(given) };
}

/** One prompt, or several. An array that begins with a number is one prompt of ids. */
function promptsOf({ prompt }) {
  const isMany = Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== 'number';
  const prompts = isMany ? prompt : [prompt];
  if (prompts.every((one) => typeof one === 'string' || Array.isArray(one))) return prompts;
  throw badParam('prompt', 'must be a text, an array of token ids, or an array of those');
}

/** Fields of completions only. To choose the best of several, log probabilities are always requested. */
function moreOf(body, { n, stream }, { logprobs }) {
  const { suffix, best_of: made } = body;
  const echo = flag(body, 'echo');
  if (suffix != null && typeof suffix !== 'string') throw badParam('suffix', 'must be a string');
  if (suffix && echo) throw badParam('echo', 'and suffix exclude each other');
  const filled = suffix ? { options: { suffix } } : {};
  if (made == null || made === n) return { echo, ...filled };
  if (!Number.isInteger(made) || made < n || made > MOST.n)
    throw badParam('best_of', `must be a whole number from n (${n}) to ${MOST.n}`);
  if (stream) throw badParam('best_of', 'must be n for a stream, since the best is not known before the end');
  if (echo) throw badParam('echo', 'and best_of exclude each other');
  const best = { made, wanted: n, showsLogprobs: logprobs !== undefined };
  return { echo, n: made, best, options: { ...filled.options, logprobs: logprobs ?? 0 } };
}

/** @param {{endTokens: readonly number[]}} info @returns {Request} for POST /completions */
export function completionRequest(body, info) {
  const { options, ...request } = common(
    isRecord(body) ? { ...body, echo: null, best_of: null, suffix: null } : body,
    'text',
  );
  const prompts = promptsOf(body);
  const more = moreOf(body, request, options);
  const all = prompts.length * (more.n ?? request.n);
  if (all > MOST.choices) throw badParam('prompt', `asks for ${all} choices, at most ${MOST.choices} are possible`);
  const { logitBias = {} } = options;
  if (!isRecord(logitBias)) throw badParam('logit_bias', 'must be an object from token ids to numbers');
  const never = flag(body, 'ignore_eos') ? Object.fromEntries(info.endTokens.map((id) => [id, -Infinity])) : {};
  const asked = { maxTokens: COMPLETION_TOKENS, ...options, ...more.options, logitBias: { ...logitBias, ...never } };
  return { ...request, ...more, prompts, options: asked };
}

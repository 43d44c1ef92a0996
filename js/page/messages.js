// SPDX-License-Identifier: MIT
// Conversations as callers may pass them, checked on the page: an error names what is wrong as it was written
// (`messages[3].content[1].image`). What is left of a content is a text, or, where it has images or videos, a list of
// parts.

import { QuernError, badParam, unknownName } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { copied, oneOf, read } from './values.js';

/** Images and videos of one prompt. */
const MOST_MEDIA = 64;

const ROLES = oneOf('system', 'user', 'assistant', 'tool');

/** What other parts there are. */
const SEEN = ['image', 'image_url', 'video'];

/** A part for a model without vision. @returns {{type: string, text?: string}} */
export function textPart(part, path) {
  if (!isRecord(part)) throw badParam(path, 'must be an object with a type');
  const type = read(part, 'type', `${path}.type`);
  if (SEEN.includes(type)) {
    throw new QuernError('use/param', 'This model has no vision: load it with its projector (`vision`).', {
      detail: { param: 'messages' },
    });
  }
  if (type !== 'text') throw badParam(`${path}.type`, `must be 'text', ${SEEN.map((name) => `'${name}'`).join(', ')}`);
  const text = read(part, 'text', `${path}.text`);
  if (typeof text !== 'string') throw badParam(`${path}.text`, 'must be a string');
  return { type, text };
}

/** A text, or parts where some are no text. */
function checkContent(content, path, role, checkPart) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw badParam(path, 'must be a string or an array of parts');
  const parts = Array.from(content, (part, i) => checkPart(part, `${path}[${i}]`, role));
  return parts.every(({ type }) => type === 'text') ? parts.map(({ text }) => text).join('') : parts;
}

/** Names of what was thought, as programs write it: the first one that is there counts, as in transformers. */
export const THOUGHTS = ['reasoning_content', 'thinking', 'reasoning'];

function thoughtOf(message, path) {
  for (const name of THOUGHTS) {
    const thought = read(message, name, `${path}.${name}`);
    if (thought == null) continue;
    if (typeof thought !== 'string') throw badParam(`${path}.${name}`, 'must be a string');
    return { thinking: thought };
  }
  return {};
}

/** OpenAI's calls as ours. */
function callsOf(message, path) {
  const at = `${path}.tool_calls`;
  return read(message, 'tool_calls', at, (calls) => calls?.map((call, i) => {
    const { name, arguments: given } = call?.function ?? {};
    if (typeof name !== 'string') throw new TypeError(`[${i}].function has no name`);
    return { id: call.id, name, arguments: given };
  }));
}

const FIELDS = ['role', 'content', ...THOUGHTS, 'toolCalls', 'toolCallId', 'tool_calls', 'tool_call_id'];

/**
 * How other programs, and slips of the hand, call what a model is told; what else a message has (an id, a date) is its
 * owner's affair.
 */
const TELLING = new RegExp(
  `^(?:${[
    'name|text|parts|media|documents|prefix|partial|refusal|annotations|reasoning.?details|reasoning.?content|function.?call|tool.?calls?(?:.?id)?',
    'tool.?(?:name|invocations|results?|responses?)|(?:input.?|experimental.?)?(?:image|audio|video|file|attachment)s?(?:.?url)?',
    ...FIELDS,
  ].join('|')})$`,
  'i',
);

/** Nothing of that kind vanishes unsaid. */
function checkTelling(message, path, role) {
  for (const key of Object.keys(message)) {
    if (FIELDS.includes(key) || !TELLING.test(key) || (key === 'name' && role === 'tool')) continue;
    const value = read(message, key, `${path}.${key}`);
    if (value != null && value !== false && value.length !== 0) throw unknownName(`${path}.${key}`, FIELDS, 'field');
  }
}

function checkMessage(message, path, checkPart) {
  if (!isRecord(message)) throw badParam(path, 'must be an object with role and content');
  const role = read(message, 'role', `${path}.role`);
  const content = read(message, 'content', `${path}.content`);
  const thought = thoughtOf(message, path);
  const problem = ROLES(role);
  if (problem) throw badParam(`${path}.role`, problem);
  checkTelling(message, path, role);
  // The worker looks at these closely (reply/tools.js).
  const toolCallId =
    read(message, 'toolCallId', `${path}.toolCallId`) ?? read(message, 'tool_call_id', `${path}.tool_call_id`);
  if (toolCallId != null && typeof toolCallId !== 'string') throw badParam(`${path}.toolCallId`, 'must be a string');
  const tools = read(message, 'toolCalls', `${path}.toolCalls`, (own) => {
    const toolCalls = own ?? callsOf(message, path);
    return toolCalls == null && toolCallId == null ? {} : copied({ toolCalls, toolCallId });
  });
  const said = checkContent(content ?? (tools.toolCalls && ''), `${path}.content`, role, checkPart);
  return { role, content: said, ...thought, ...tools };
}

const mediaIn = ({ content }) =>
  typeof content === 'string' ? 0 : content.filter(({ type }) => type !== 'text').length;

/** How many images and videos checked messages have. */
export const countMedia = (messages) => messages.reduce((sum, message) => sum + mediaIn(message), 0);

/**
 * A checked copy of a conversation; a string is one message of the user's.
 * @param {boolean} [goesOn] with its last message
 * @param {(part: any, path: string, role: string) => {type: string, text?: string}} [checkPart] parts.js's, for models
 *   that see
 */
export function checkMessages(messages, goesOn = false, checkPart = textPart) {
  if (typeof messages === 'string') return checkMessages([{ role: 'user', content: messages }], goesOn);
  if (!Array.isArray(messages)) throw badParam('messages', 'must be a text or an array of messages');
  if (messages.length === 0) throw badParam('messages', 'must not be empty');
  const checked = Array.from(messages, (message, i) => checkMessage(message, `messages[${i}]`, checkPart));
  if (goesOn && checked.at(-1).role !== 'assistant')
    throw badParam('messages', "must end with a message of the assistant's to be continued");
  const n = countMedia(checked);
  if (n <= MOST_MEDIA) return checked;
  throw new QuernError('image/size', `The messages have ${n} images and videos, at most ${MOST_MEDIA} are possible.`,
    { detail: { found: n, limit: MOST_MEDIA } });
}

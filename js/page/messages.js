// SPDX-License-Identifier: MIT
// Checks conversations on the page. An error names the faulty place as the caller wrote it
// (`messages[3].content[1].image`). The content of a checked message is a text, or a list of parts if it has images or
// videos.

import { QuernError, badParam, unknownName } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { copied, oneOf, read } from './values.js';

/** Most images and videos in one prompt. */
const MOST_MEDIA = 64;

const ROLES = oneOf('system', 'user', 'assistant', 'tool');

/** Types of parts other than text. */
const SEEN = ['image', 'image_url', 'video'];

/** Checks a part for a model without vision. @returns {{type: string, text?: string}} */
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

/** Returns a text, or the parts if some of them are not text. */
function checkContent(content, path, role, checkPart) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw badParam(path, 'must be a string or an array of parts');
  const parts = Array.from(content, (part, i) => checkPart(part, `${path}[${i}]`, role));
  return parts.every(({ type }) => type === 'text') ? parts.map(({ text }) => text).join('') : parts;
}

/** Names that programs use for thinking. The first one present counts, as in transformers. */
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

/** Converts calls in OpenAI's form. */
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
 * Field names with which other programs, or typing errors, would tell the model something. Any other field of a message
 * (an id, a date) is the caller's own.
 */
const TELLING = new RegExp(
  `^(?:${[
    'name|text|parts|media|documents|prefix|partial|refusal|annotations|reasoning.?details|reasoning.?content|function.?call|tool.?calls?(?:.?id)?',
    'tool.?(?:name|invocations|results?|responses?)|(?:input.?|experimental.?)?(?:image|audio|video|file|attachment)s?(?:.?url)?',
    ...FIELDS,
  ].join('|')})$`,
  'i',
);

/** Throws if a field that would tell the model something would be ignored. */
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
  // The worker checks these in detail (reply/tools.js).
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

/** Counts the images and videos in checked messages. */
export const countMedia = (messages) => messages.reduce((sum, message) => sum + mediaIn(message), 0);

/**
 * Returns a checked copy of a conversation. A string is one message of the user.
 * @param {boolean} [goesOn] whether the reply continues the last message
 * @param {(part: any, path: string, role: string) => {type: string, text?: string}} [checkPart] the function of
 *   parts.js, for models with vision
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

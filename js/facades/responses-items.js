// SPDX-License-Identifier: MIT
// Converts items of POST /responses to messages of a chat: all items of one reply (reasoning, a text, calls) become one
// message of the assistant. Types that no model here could use are refused.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { otherType } from './dialect.js';
import { unsupported } from './openai-refused.js';

/** Parts of contents, which are those of a chat under other names. */
const PARTS = {
  input_text: ({ text }) => ({ type: 'text', text }),
  output_text: ({ text }) => ({ type: 'text', text }),
  refusal: ({ refusal }) => ({ type: 'text', text: refusal }),
  input_image: ({ image_url: url, detail, file_id: file }, path) => {
    if (url == null && file != null) throw unsupported(`${path}.file_id`);
    return { type: 'image_url', image_url: { url, ...(detail != null && { detail }) } };
  },
};

/** A text, or parts. */
function contentOf(content, path) {
  if (!Array.isArray(content)) return content;
  return content.map((part, i) => {
    const at = `${path}[${i}]`;
    if (!isRecord(part)) throw badParam(at, 'must be an object with a type');
    if (typeof part.type === 'string' && Object.hasOwn(PARTS, part.type)) return PARTS[part.type](part, at);
    throw unsupported(`${at}.type`, otherType(part.type, Object.keys(PARTS).join(', ')));
  });
}

/**
 * Encodes thinking for a client that stores conversations itself, and sends back what it does not understand. It is not
 * secret: the same text is beside it.
 */
export function sealed(text) {
  let letters = '';
  for (const byte of new TextEncoder().encode(text)) letters += String.fromCharCode(byte);
  return btoa(letters);
}

function opened(letters, path) {
  try {
    const binary = atob(letters);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
    return new TextDecoder().decode(bytes);
  } catch {
    throw badParam(`${path}.encrypted_content`, 'must come from a response of this server');
  }
}

const partsOf = (content) => (Array.isArray(content) ? content : [{ type: 'text', text: content }]);

/** Appends a content to parts. */
function joined(parts, content) {
  for (const part of partsOf(content)) parts.push(part);
  return parts;
}

/** The text of a reasoning item: the whole, or its summary. */
function thoughtOf({ content, summary, encrypted_content: letters }, path) {
  if (typeof letters === 'string') return opened(letters, path);
  const parts = content?.length ? content : summary ?? [];
  if (!Array.isArray(parts)) throw badParam(`${path}.${parts === content ? 'content' : 'summary'}`, 'must be an array');
  return parts.map((part) => (isRecord(part) ? part.text : '')).filter((text) => typeof text === 'string').join('\n');
}

/** The messages so far. */
class Thread {
  messages = [];

  /** @param {import('./dialect.js').Origin[]} origins of the messages */
  constructor(origins) {
    this.origins = origins;
  }

  add(message, path) {
    this.messages.push(message);
    this.origins[this.messages.length - 1] = { path };
  }

  /**
   * Returns the assistant's message that an item belongs to: the last one, if it has calls (whose results must follow
   * it) or `isBegun` says so; otherwise a new one.
   */
  said(path, isBegun) {
    const last = this.messages.at(-1);
    if (last?.role === 'assistant' && (last.tool_calls || isBegun(last))) return last;
    this.add({ role: 'assistant', content: null }, path);
    return this.messages.at(-1);
  }
}

/** Adds a call of a tool of either type. */
const calls = (callOf) => (item, path, thread) => {
  const message = thread.said(path, () => true);
  (message.tool_calls ??= []).push({ id: item.call_id, ...callOf(item) });
};

/** Adds the result of a call. */
const results = ({ call_id: id, output }, path, thread) => {
  thread.add({ role: 'tool', tool_call_id: id, content: contentOf(output, `${path}.output`) }, path);
};

const ITEMS = {
  message: ({ role, content }, path, thread) => {
    const said = contentOf(content, `${path}.content`);
    if (role !== 'assistant') thread.add({ role, content: said }, path);
    else {
      const message = thread.said(path, ({ content: before }) => before == null);
      message.content = message.content == null ? said : joined(partsOf(message.content), said);
    }
  },
  reasoning: (item, path, thread) => {
    const thought = thoughtOf(item, path);
    if (!thought) return;
    const message = thread.said(path, () => false);
    const { reasoning_content: before } = message;
    message.reasoning_content = before ? `${before}\n${thought}` : thought;
  },
  function_call: calls(({ name, arguments: given }) => ({ type: 'function', function: { name, arguments: given } })),
  function_call_output: results,
  custom_tool_call: calls(({ name, input }) => ({ type: 'custom', custom: { name, input } })),
  custom_tool_call_output: results,
};

function kindOf({ type = 'message' }, path) {
  if (typeof type === 'string' && Object.hasOwn(ITEMS, type)) return type;
  throw unsupported(`${path}.type`, otherType(type, Object.keys(ITEMS).join(', ')));
}

/**
 * Converts items to messages.
 * @param {{item: any, path: string}[]} items with their names in errors
 * @param {import('./dialect.js').Origin[]} origins of the messages; they are added here
 * @param {object[]} before messages that come first
 */
export function messagesOf(items, origins, before) {
  const thread = new Thread(origins);
  for (const message of before) thread.add(message, 'instructions');
  for (const { item, path } of items) {
    if (!isRecord(item)) throw badParam(path, 'must be an object with a type');
    ITEMS[kindOf(item, path)](item, path, thread);
  }
  return thread.messages;
}

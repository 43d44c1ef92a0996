// SPDX-License-Identifier: MIT
// Converts a request of POST /responses to one of a chat, with a conversation that may continue a stored one. Tools,
// formats and choices are those of a chat in another wrapping.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { asked, otherType, renamed, same } from './dialect.js';
import { MOST, isNothing } from './openai-request.js';
import { unsupported } from './openai-refused.js';
import { messagesOf } from './responses-items.js';
import { randomId } from '../shared/random-id.js';

/** Fields of a chat, and fields of other servers, by their names here. */
const FIELDS = {
  ...same(
    'temperature',
    'top_p',
    'top_k',
    'min_p',
    'stop',
    'seed',
    'presence_penalty',
    'frequency_penalty',
    'repeat_penalty',
    'logit_bias',
    'priority',
    'grammar',
    'chat_template_kwargs',
    'parallel_tool_calls',
    'stream',
  ),
  max_output_tokens: 'max_tokens',
};

/** Fields that are not supported, each with a test for values that do nothing. */
const UNSUPPORTED = {
  conversation: isNothing,
  prompt: () => false,
  context_management: isNothing,
  moderation: () => false,
};

/** This API's names for fields of a chat. */
const TERMS = {
  max_tokens: 'max_output_tokens',
  messages: 'input',
  reasoning_effort: 'reasoning.effort',
  'tools\\[(\\d+)\\]\\.(?:function|custom)': 'tools[$1]',
  'tool_choice\\.(?:function|custom|allowed_tools)': 'tool_choice',
  'response_format\\.json_schema': 'text.format',
  response_format: 'text.format',
  tool_call_id: 'call_id',
};

/** Limits of metadata: pairs, and letters of names and values. */
const METADATA = { pairs: 16, name: 64, value: 512 };

function checkMetadata({ metadata }) {
  if (metadata == null) return;
  const { pairs, name: nameLimit, value: limit } = METADATA;
  const entries = isRecord(metadata) ? Object.entries(metadata) : null;
  const fits = ([name, value]) => name.length <= nameLimit && typeof value === 'string' && value.length <= limit;
  if (entries && entries.length <= pairs && entries.every(fits)) return;
  throw badParam(
    'metadata',
    `must be an object of at most ${pairs} texts of at most ${limit} letters, with names of at most ${nameLimit}`,
  );
}

/** Converts tools to those of a chat. */
function toolsOf({ tools }) {
  if (tools == null) return {};
  if (!Array.isArray(tools)) throw badParam('tools', 'must be an array');
  return {
    tools: tools.map((tool, i) => {
      if (!isRecord(tool)) throw badParam(`tools[${i}]`, 'must be an object with a type');
      const { type, name, description, parameters, format } = tool;
      if (type !== 'function' && type !== 'custom')
        throw unsupported(`tools[${i}].type`, otherType(type, 'function and custom'));
      const described = { name, ...(description != null && { description }) };
      return type === 'custom'
        ? { type, custom: { ...described, format } }
        : { type, function: { ...described, ...(parameters != null && { parameters }) } };
    }),
  };
}

/** Converts a choice that names a tool. */
const named = (value) => {
  const type = ['function', 'custom'].find((one) => isRecord(value) && value.type === one && !value[one]);
  return type ? { type, [type]: { name: value.name } } : value;
};

function choiceOf({ tool_choice: choice }) {
  if (choice == null) return {};
  if (choice?.type !== 'allowed_tools') return { tool_choice: named(choice) };
  const { mode, tools } = choice;
  return {
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode, tools: Array.isArray(tools) ? tools.map(named) : tools },
    },
  };
}

function formatOf({ text }) {
  if (text == null) return {};
  if (!isRecord(text)) throw badParam('text', 'must be an object');
  const { format } = text;
  if (!isRecord(format) || format.type !== 'json_schema') return format == null ? {} : { response_format: format };
  const { type, ...described } = format;
  return { response_format: { type, json_schema: described } };
}

function reasoningOf({ reasoning }) {
  if (reasoning == null) return {};
  if (!isRecord(reasoning)) throw badParam('reasoning', 'must be an object');
  return reasoning.effort == null ? {} : { reasoning_effort: reasoning.effort };
}

function logprobsOf({ include, top_logprobs: top }) {
  if (include != null && !Array.isArray(include)) throw badParam('include', 'must be an array');
  const isAsked = include?.includes('message.output_text.logprobs') || top > 0;
  return isAsked ? { logprobs: true, ...(top != null && { top_logprobs: top }) } : {};
}

/**
 * The items of a request, each with an id and its name in errors. References by id are replaced by the stored items.
 */
function itemsOf({ input }, reader) {
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input ?? [];
  if (!Array.isArray(items)) throw badParam('input', 'must be a text or an array of items');
  if (items.length > MOST.messages) throw badParam('input', `has more than ${MOST.messages} items`);
  const id = randomId();
  return items.map((item, i) => {
    const path = `input[${i}]`;
    const isReference =
      isRecord(item) && (item.type === 'item_reference' || (item.type == null && item.id != null && item.role == null));
    if (isReference) return { item: reader.item(item.id, path), path };
    return { item: isRecord(item) ? { id: `in_${id}_${i}`, ...item, type: item.type ?? 'message' } : item, path };
  });
}

/** Converts an item to its listed and stored form, in which texts are parts. */
function listed({ item }) {
  const { type, role, content } = item;
  if (type !== 'message' || typeof content !== 'string') return item;
  return {
    ...item,
    status: 'completed',
    content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text: content }],
  };
}

/**
 * @param {any} body parsed JSON
 * @param {import('./responses-store.js').Reader} reader of the client's stored responses
 * @returns {import('./openai-request.js').Request & {input: any[], previous: string | null}} input: the request's own
 *   items
 */
export function responsesRequest(body, reader) {
  let own = [];
  const translate = (given, origins) => {
    checkMetadata(given);
    const { instructions, previous_response_id: previous, input } = given;
    if (instructions != null && typeof instructions !== 'string') throw badParam('instructions', 'must be a text');
    own = itemsOf(given, reader);
    const earlier =
      previous == null ? [] : reader.before(previous).map((item) => ({ item, path: 'previous_response_id' }));
    if (input == null && earlier.length === 0) throw badParam('input', 'is missing');
    const before = instructions ? [{ role: 'system', content: instructions }] : [];
    return {
      ...renamed(given, FIELDS),
      messages: messagesOf([...earlier, ...own], origins, before),
      ...toolsOf(given),
      ...choiceOf(given),
      ...formatOf(given),
      ...reasoningOf(given),
      ...logprobsOf(given),
    };
  };
  const { options, ...request } = asked(body, { unsupported: UNSUPPORTED, terms: TERMS, translate });
  const { truncation, previous_response_id: previous = null } = body;
  if (truncation != null && truncation !== 'auto' && truncation !== 'disabled')
    throw badParam('truncation', "must be 'auto' or 'disabled'");
  return {
    ...request,
    options: truncation === 'auto' ? { ...options, overflow: 'drop' } : options,
    input: own.map(listed),
    previous,
  };
}

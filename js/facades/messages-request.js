// SPDX-License-Identifier: MIT
// Converts a request of Anthropic's POST /messages to one of a chat. Its messages consist of blocks; results of tools
// become messages of their own.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { asked, otherType, renamed, same } from './dialect.js';
import { isNothing } from './openai-request.js';
import { unsupported } from './openai-refused.js';

const FIELDS = {
  ...same(
    'max_tokens',
    'temperature',
    'top_p',
    'top_k',
    'min_p',
    'seed',
    'repeat_penalty',
    'presence_penalty',
    'frequency_penalty',
    'stream',
  ),
  stop_sequences: 'stop',
};

const UNSUPPORTED = { mcp_servers: isNothing, container: () => false, context_management: isNothing };

/** This API's names for fields of a chat. */
const TERMS = {
  stop: 'stop_sequences',
  'chat_template_kwargs.enable_thinking': 'thinking',
  'tools\\[(\\d+)\\]\\.function\\.parameters': 'tools[$1].input_schema',
  'tools\\[(\\d+)\\]\\.function': 'tools[$1]',
  'tool_choice\\.function': 'tool_choice',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  'response_format\\.json_schema': 'output_config.format',
  response_format: 'output_config.format',
  image_url: 'source',
};

const textBlock = ({ text }) => ({ type: 'text', text });

/** Images must be part of the request, in base64. */
function imageBlock({ source }, path) {
  if (!isRecord(source)) throw badParam(`${path}.source`, 'must be an object');
  const { type, media_type: media, data } = source;
  if (type !== 'base64') throw unsupported(`${path}.source.type`, otherType(type, 'base64'));
  if (typeof media !== 'string' || typeof data !== 'string')
    throw badParam(`${path}.source`, 'must have media_type and data');
  return { type: 'image_url', image_url: { url: `data:${media};base64,${data}` } };
}

/** Blocks that become parts of a content. */
const PARTS = { text: textBlock, image: imageBlock };

/** Converts a block with the function for its type. */
function madeOf(block, path, kinds) {
  if (!isRecord(block)) throw badParam(path, 'must be an object with a type');
  const { type } = block;
  if (typeof type === 'string' && Object.hasOwn(kinds, type)) return kinds[type](block, path);
  throw unsupported(`${path}.type`, otherType(type, Object.keys(kinds).join(', ')));
}

/** Converts a text or blocks to a chat's content. */
function contentOf(content, path, kinds = PARTS) {
  return Array.isArray(content) ? content.map((block, i) => madeOf(block, `${path}[${i}]`, kinds)) : content;
}

/** Converts a tool's result; a failed one begins with "Error: ". */
function resultOf({ tool_use_id: id, content, is_error: failed }, path) {
  const said = contentOf(content ?? '', `${path}.content`);
  const parts =
    failed === true
      ? [{ type: 'text', text: 'Error: ' }, ...(Array.isArray(said) ? said : [{ type: 'text', text: said }])]
      : said;
  return { role: 'tool', tool_call_id: id, content: parts };
}

/** The user's text follows the results of tools. */
function userMessages({ content }, path) {
  if (!Array.isArray(content)) return [{ message: { role: 'user', content }, path }];
  const isResult = (block) => isRecord(block) && block.type === 'tool_result';
  const at = (i) => `${path}.content[${i}]`;
  const results = content.flatMap((block, i) =>
    isResult(block) ? [{ message: resultOf(block, at(i)), path: at(i) }] : [],
  );
  const parts = content.flatMap((block, i) => (isResult(block) ? [] : [i]));
  if (parts.length === 0) return results;
  const said = { role: 'user', content: parts.map((i) => madeOf(content[i], at(i), PARTS)) };
  return [...results, { message: said, path, parts }];
}

/** Blocks of the assistant, converted to fields of a chat's message. */
const SAID = {
  text: ({ text }) => ({ content: [{ type: 'text', text }] }),
  thinking: ({ thinking }) => ({ thoughts: [thinking] }),
  redacted_thinking: () => ({}),
  tool_use: ({ id, name, input }) => ({
    calls: [{ id, type: 'function', function: { name, arguments: input ?? {} } }],
  }),
};

function assistantMessage({ content }, path) {
  if (!Array.isArray(content)) return { role: 'assistant', content };
  const blocks = content.map((block, i) => madeOf(block, `${path}.content[${i}]`, SAID));
  const all = (name) => blocks.flatMap((block) => block[name] ?? []);
  const thoughts = all('thoughts').filter(Boolean);
  const calls = all('calls');
  return {
    role: 'assistant', content: all('content'), ...(thoughts.length && { reasoning_content: thoughts.join('\n') }),
    ...(calls.length && { tool_calls: calls }),
  };
}

function messagesOf({ system, messages }, origins) {
  if (!Array.isArray(messages)) throw badParam('messages', 'must be an array of messages');
  const first = system == null || system.length === 0 ? [] : [
    { message: { role: 'system', content: contentOf(system, 'system', { text: textBlock }) }, path: 'system' }];
  const all = messages.flatMap((message, i) => {
    const path = `messages[${i}]`;
    if (!isRecord(message)) throw badParam(path, 'must be an object with role and content');
    if (message.role === 'assistant') return [{ message: assistantMessage(message, path), path }];
    if (message.role === 'user') return userMessages(message, path);
    throw badParam(`${path}.role`, "must be 'user' or 'assistant'");
  });
  return [...first, ...all].map(({ message, ...origin }) => {
    origins.push(origin);
    return message;
  });
}

function toolsOf({ tools }) {
  if (tools == null) return {};
  if (!Array.isArray(tools)) throw badParam('tools', 'must be an array');
  return { tools: tools.map((tool, i) => {
    if (!isRecord(tool)) throw badParam(`tools[${i}]`, 'must be an object');
    const { type, name, description, input_schema: parameters } = tool;
    if (type != null && type !== 'custom') throw unsupported(`tools[${i}].type`, otherType(type, 'custom'));
    const described = { name, ...(description != null && { description }), ...(parameters != null && { parameters }) };
    return { type: 'function', function: described };
  }) };
}

const CHOICES = {
  auto: () => 'auto',
  any: () => 'required',
  none: () => 'none',
  tool: ({ name }) => ({ type: 'function', function: { name } }),
};

function choiceOf({ tool_choice: choice }) {
  if (choice == null) return {};
  const isOne = choice?.disable_parallel_tool_use === true && { parallel_tool_calls: false };
  return { tool_choice: madeOf(choice, 'tool_choice', CHOICES), ...isOne };
}

/** A budget for thinking is not supported: thinking ends when the model ends it, or at the limit of all tokens. */
const THINKING = { enabled: () => true, adaptive: () => true, disabled: () => false };

const thinkingOf = ({ thinking }) => (
  thinking == null ? {} : { chat_template_kwargs: { enable_thinking: madeOf(thinking, 'thinking', THINKING) } });

const FORMATS = {
  json_schema: ({ schema }) => ({ response_format: { type: 'json_schema', json_schema: { name: 'output', schema } } }),
};

function formatOf({ output_config: config, output_format: older }) {
  const format = config?.format ?? older;
  return format == null ? {} : madeOf(format, 'output_config.format', FORMATS);
}

/** An assistant's message at the end is continued. */
const goesOn = ({ messages }) => (messages.at(-1)?.role === 'assistant' ? { continue_final_message: true } : {});

function translate(body, origins) {
  const chat = { messages: messagesOf(body, origins) };
  return {
    ...renamed(body, FIELDS),
    ...chat,
    ...goesOn(body),
    ...toolsOf(body),
    ...choiceOf(body),
    ...thinkingOf(body),
    ...formatOf(body),
  };
}

/** @returns {import('./openai-request.js').Request} for POST /messages */
export const messagesRequest = (body) => asked(body, { unsupported: UNSUPPORTED, terms: TERMS, translate });

// SPDX-License-Identifier: MIT
// Converts the AI SDK's call of a language model to messages and options of chat(). If something cannot be honoured, it
// is a warning, as the SDK wants it; if it would change the meaning of the answer, the call fails.

/** Symbols by which the SDK recognizes its errors, wherever they come from. */
const MARKER = 'vercel.ai.error';

/** @param {string} name the SDK's name of the error @param {object} fields of such an error */
export function sdkError(name, message, fields) {
  return Object.assign(new Error(message), fields, {
    name,
    [Symbol.for(MARKER)]: true,
    [Symbol.for(`${MARKER}.${name}`)]: true,
  });
}

function unsupported(functionality) {
  return sdkError('AI_UnsupportedFunctionalityError', `quern does not support ${functionality}.`, { functionality });
}

// --- messages ---

const textsOf = (parts) => parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');

/**
 * Converts a file's data to the tagged form (`{ type, data | url | text }`), which version 7 of the SDK may use;
 * version 6 gives bytes, base64 or an address.
 * @returns {{type: string, data?: any, url?: any, text?: string}}
 */
function taggedData(data) {
  if (data instanceof URL) return { type: 'url', url: data };
  return typeof data === 'string' || data instanceof Uint8Array ? { type: 'data', data } : data;
}

/** An address is passed on as it is, bytes as a Blob. */
function contentOf(file, mediaType) {
  if (file.type === 'url') return file.url;
  const { data } = file;
  const bytes = typeof data === 'string' ? Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)) : data;
  return new Blob([bytes], { type: mediaType });
}

function partOf(part) {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { mediaType, providerOptions } = part;
  const data = taggedData(part.data);
  if (data.type === 'text') return { type: 'text', text: data.text };
  const kind = /^(image|video)(\/|$)/.exec(mediaType)?.[1];
  if (!kind || !['data', 'url'].includes(data.type)) throw unsupported(`files of the type ${mediaType}`);
  return { type: kind, [kind]: contentOf(data, mediaType), ...providerOptions?.quern };
}

function outputOf({ type, value, reason }, warnings) {
  if (type === 'text' || type === 'error-text') return value;
  if (type === 'execution-denied') return reason ?? 'The call was not allowed.';
  if (type !== 'content') return JSON.stringify(value);
  if (value.some((part) => part.type !== 'text'))
    warnings.push({ type: 'unsupported', feature: 'files in results of tools' });
  return textsOf(value);
}

function spokenBy({ content }) {
  const strange = content.find(({ type }) => type === 'file');
  if (strange) throw unsupported('files in messages of the assistant');
  const thinking = content.filter(({ type }) => type === 'reasoning').map(({ text }) => text).join('');
  const toolCalls = content.filter(({ type, providerExecuted }) => type === 'tool-call' && !providerExecuted)
    .map(({ toolCallId: id, toolName: name, input }) => ({ id, name, arguments: input ?? {} }));
  return {
    role: 'assistant',
    content: textsOf(content),
    ...(thinking && { thinking }),
    ...(toolCalls.length && { toolCalls }),
  };
}

const MESSAGES = {
  system: ({ content }) => [{ role: 'system', content }],
  user: ({ content }) => {
    const parts = content.map(partOf);
    return [{ role: 'user', content: parts.every(({ type }) => type === 'text') ? textsOf(parts) : parts }];
  },
  assistant: (message) => [spokenBy(message)],
  tool: ({ content }, warnings) => content.filter(({ type }) => type === 'tool-result')
    .map(({ toolCallId, output }) => ({ role: 'tool', toolCallId, content: outputOf(output, warnings) })),
};

// --- options ---

/** The SDK's names of options. */
const OPTIONS = {
  maxTokens: 'maxOutputTokens',
  temperature: 'temperature',
  topP: 'topP',
  topK: 'topK',
  presencePenalty: 'presencePenalty',
  frequencyPenalty: 'frequencyPenalty',
  stop: 'stopSequences',
  seed: 'seed',
  signal: 'abortSignal',
};

/** @param {{tools?: any[], toolChoice?: any}} options */
function toolsOf({ tools = [], toolChoice }, warnings) {
  const functions = tools.filter(({ type }) => type === 'function');
  const others = tools.filter((one) => !functions.includes(one));
  warnings.push(...others.map(({ name }) => ({ type: 'unsupported', feature: `the provider's tool ${name}` })));
  if (!functions.length) return {};
  const choice = toolChoice?.type === 'tool' ? { name: toolChoice.toolName } : toolChoice?.type;
  return {
    tools: functions.map(({ name, description, inputSchema: parameters }) => ({ name, description, parameters })),
    ...(choice && { toolChoice: choice }),
  };
}

/** @param {{responseFormat?: any}} options */
function formatOf({ responseFormat }) {
  if (responseFormat?.type !== 'json') return {};
  return responseFormat.schema ? { schema: responseFormat.schema } : { json: true };
}

/** Only whether to think can be passed on, not how much. */
function thinkingOf({ reasoning = 'provider-default' }) {
  return reasoning === 'provider-default' ? {} : { thinking: reasoning !== 'none' };
}

/**
 * @param {import('@ai-sdk/provider').LanguageModelV3CallOptions & {reasoning?: string}} options version 7 passes
 *   `reasoning` too
 * @returns {{messages: object[], given: any, warnings: any[]}} arguments of chat(); `providerOptions.quern` are options
 *   of chat()
 */
export function requestOf(options) {
  const warnings = [];
  const messages = options.prompt.flatMap((message) => MESSAGES[message.role](message, warnings));
  const plain = Object.entries(OPTIONS)
    .filter(([, name]) => options[name] != null)
    .map(([option, name]) => [option, options[name]]);
  const given = {
    ...Object.fromEntries(plain),
    ...thinkingOf(options),
    ...toolsOf(options, warnings),
    ...formatOf(options),
    ...options.providerOptions?.quern,
  };
  return { messages, given, warnings };
}

// SPDX-License-Identifier: MIT
// The paths that turn texts into tokens and back, without a reply: llama-server's, vLLM's of the same names, from which
// lm-eval gets all it needs of a tokenizer, and the count of a request's prompt tokens.

import { messagesRequest } from '../facades/messages-request.js';
import { chatRequest } from '../facades/openai.js';
import { completionRequest } from '../facades/openai-request.js';
import { responsesRequest } from '../facades/responses-request.js';
import { Reader } from '../facades/responses-store.js';
import { badParam } from '../shared/errors.js';
import { refusal } from './serve-refusal.js';

/**
 * Most letters of a text to tokenize, and most tokens to turn into a text. Both are single pieces of work, which
 * replies wait for.
 */
const MOST_TEXT = 2 ** 20;
const MOST_IDS = 2 ** 17;

/** Tokens whose texts are made per turn. */
const RUN = 2 ** 12;

/** Throws if a field is set that is not supported. @param {Record<string, boolean>} wanted by field */
function refuseWanted(wanted) {
  const [field] = Object.keys(wanted).filter((name) => wanted[name]);
  if (field)
    throw refusal(400, `${field} is not supported by this version.`, { param: field, code: 'unsupported_parameter' });
}

/** The text in a field. */
function textOf(body, field) {
  const text = body?.[field];
  if (typeof text !== 'string') throw badParam(field, 'must be a string');
  if (text.length > MOST_TEXT) throw badParam(field, `is longer than ${MOST_TEXT} letters`);
  return text;
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Used if the model does not say which tokens it adds. */
const NOTHING_ADDED = { before: [], after: [] };

/** A token's text, or its bytes as numbers if they are part of a character. @param {Uint8Array} bytes */
function pieceOf(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return [...bytes];
  }
}

/** A text's tokens, with or without those that the model's file adds around it. @returns {Promise<Int32Array>} */
async function tokensOf(model, text, isWhole) {
  const ids = Int32Array.from(await model.tokenize(text));
  const { before, after } = model.info.added ?? NOTHING_ADDED;
  return isWhole ? ids : ids.subarray(before.length, ids.length - after.length);
}

/** Makes a value for each token, when it is written. @returns {Promise<Iterable<any>>} */
async function eachOf(model, ids, { turn }, make) {
  // a million letters may be a million tokens, but far fewer different ones
  const different = await turn(() => [...new Set(ids)]);
  const bytes = await model.detokenize(different, { bytes: true });
  const pieces = new Map();
  for (let at = 0; at < bytes.length; at += RUN) {
    await turn(() => bytes.slice(at, at + RUN).forEach((one, i) => pieces.set(different[at + i], pieceOf(one))));
  }
  return { * [Symbol.iterator]() { for (const id of ids) yield make(id, pieces.get(id)); } };
}

/** An upper bound of the letters in a value, nested to any depth. */
function lettersIn(value) {
  let sum = 0;
  const open = [value];
  while (open.length) {
    const one = open.pop();
    sum += typeof one === 'string' ? one.length : 1;
    if (typeof one === 'object') for (const key in one) open.push(one[key]);
  }
  return sum;
}

// --- vLLM's ---

/**
 * Tokens with a name in the API whose ids are known, by text. A text becomes one of them only if nothing else is in it.
 */
async function namedTokens(model) {
  const { endTokens, added = NOTHING_ADDED } = model.info;
  const ids = [...new Set([...endTokens, ...added.before, ...added.after])];
  const texts = await Promise.all(ids.map((id) => model.detokenize([id])));
  return new Map(texts.map((text, i) => [text, ids[i]]));
}

/** Tokens of a prompt. A prompt that is the text of a named token becomes that token, as clients expect. */
async function promptTokens(model, { prompt, add_special_tokens: isWhole }) {
  const named = prompt.length < 100 ? (await namedTokens(model)).get(prompt) : undefined;
  return named === undefined ? tokensOf(model, prompt, isWhole !== false) : [named];
}

/**
 * Tokens of a conversation, as the template writes it.
 * @param {string} field its name in the request
 */
async function conversationTokens(
  model,
  { messages, options: { thinking, tools, continue: goesOn } },
  field,
  generationPrompt = true,
) {
  if (lettersIn([messages, tools]) > MOST_TEXT) throw badParam(field, `are longer than ${MOST_TEXT} letters`);
  return model.tokenize(messages, { thinking, tools, continue: goesOn, generationPrompt });
}

const chatTokens = (model, body) =>
  conversationTokens(model, chatRequest(body), 'messages', body.add_generation_prompt !== false);

async function counted(model, body, asker) {
  const ids =
    body.messages === undefined
      ? await promptTokens(model, { ...body, prompt: textOf(body, 'prompt') })
      : await chatTokens(model, body);
  const textIn = (id, piece) => (typeof piece === 'string' ? piece : '\uFFFD');
  const texts = body.return_token_strs === true ? await eachOf(model, ids, asker, textIn) : null;
  return {
    json: { count: ids.length, max_model_len: model.info.contextSize, tokens: ids, token_strs: texts },
    holds: 8 * ids.length,
  };
}

const NAMES = ['bos_token', 'eos_token', 'pad_token', 'unk_token'];

/** Facts about the tokenizer, under transformers' names. */
async function tokenizerInfo(model, { template }) {
  const { specialTokens = {}, contextSize, added = NOTHING_ADDED } = model.info;
  const named = await namedTokens(model);
  const texts = Object.fromEntries(
    NAMES.map((name) => [name, named.has(specialTokens[name]) ? specialTokens[name] : null]),
  );
  return {
    json: {
      ...texts,
      add_bos_token: added.before.length > 0,
      add_eos_token: added.after.length > 0,
      model_max_length: contextSize,
      clean_up_tokenization_spaces: false,
      chat_template: await template(),
    },
  };
}

// --- counting a request's prompt ---

/** Number of tokens that mark the parts of a fill-in prompt (reply/fill-in.js). */
const MARKS = 3;

/**
 * Counts the prompt tokens of a request, as its usage would.
 * @type {Record<string, (model: any, body: any, shelf: () => any) => Promise<number>>}
 */
const INPUTS = {
  '/chat/completions': async (model, body) => (await chatTokens(model, body)).length,
  '/messages': async (model, body) => (await conversationTokens(model, messagesRequest(body), 'messages')).length,
  '/responses': async (model, body, shelf) =>
    (await conversationTokens(model, responsesRequest(body, new Reader(shelf())), 'input')).length,
  '/completions': async (model, body) => {
    const { prompts, options: { suffix } } = completionRequest(body, model.info);
    if (lettersIn([prompts, suffix]) > MOST_TEXT) throw badParam('prompt', `is longer than ${MOST_TEXT} letters`);
    const lengthOf = async (text) => (typeof text === 'string' ? (await model.tokenize(text)).length : text.length);
    const more = suffix === undefined ? 0 : MARKS + await lengthOf(suffix);
    let sum = 0;
    for (const prompt of prompts) sum += more + await lengthOf(prompt);
    return sum;
  },
};

// --- llama-server's ---

async function tokenize(model, body, asker) {
  if (body?.prompt !== undefined || body?.messages !== undefined) return counted(model, body, asker);
  const text = textOf(body, 'content');
  refuseWanted({ parse_special: body.parse_special });
  const ids = await tokensOf(model, text, body.add_special === true);
  const tokens = body.with_pieces ? await eachOf(model, ids, asker, (id, piece) => ({ id, piece })) : ids;
  return { json: { tokens }, holds: 4 * ids.length };
}

async function detokenize(model, body) {
  const { tokens } = body ?? {};
  if (!Array.isArray(tokens)) throw badParam('tokens', 'must be an array of token ids');
  if (tokens.length > MOST_IDS) throw badParam('tokens', `has more than ${MOST_IDS} token ids`);
  const text = await model.detokenize(tokens);
  return { json: { content: text, prompt: text }, holds: text.length };     // llama-server's name and vLLM's
}

async function applyTemplate(model, body) {
  refuseWanted({ continue_final_message: body?.continue_final_message === true });
  return { json: { prompt: await model.detokenize(await chatTokens(model, body)) } };
}

/**
 * The routes, by path and method.
 * @param {(site: any, name: unknown) => void} checkName throws if a request names another model
 * @param {(site: any, key: number) => import('../facades/responses-store.js').Shelf} shelfOf
 * @param {(site: any, asker: import('./serve-queue.js').Asker) => any} modelFor returns an object whose tokenize() and
 *   detokenize() wait for a place
 */
export function tokenRoutes(checkName, shelfOf, modelFor) {
  const post = (work) => ({ POST: async (site, body, asker) => work(modelFor(site, asker), body, asker) });
  const inputs = Object.entries(INPUTS).map(([path, count]) => {
    const input = async (site, body, asker) => {
      checkName(site, body?.model);
      return { input_tokens: await count(modelFor(site, asker), body, () => shelfOf(site, asker.key)) };
    };
    // Anthropic's path has another name, and its answer only this field.
    if (path === '/messages')
      return ['/messages/count_tokens', { POST: async (...asked) => ({ json: await input(...asked) }) }];
    return [
      `${path}/input_tokens`,
      { POST: async (...asked) => ({ json: { object: 'response.input_tokens', ...(await input(...asked)) } }) },
    ];
  });
  return {
    '/tokenize': post(tokenize), '/detokenize': post(detokenize), '/apply-template': post(applyTemplate),
    '/tokenizer_info': { GET: async (site, route, asker) => tokenizerInfo(modelFor(site, asker), site) },
    ...Object.fromEntries(inputs),
  };
}

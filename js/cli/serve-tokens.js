// SPDX-License-Identifier: MIT
// Texts as tokens and back, for who wants no reply: llama-server's paths, vLLM's of the same names, which lm-eval asks
// for what it needs of a tokenizer, and how many tokens the prompt of a request would have.

import { messagesRequest } from '../facades/messages-request.js';
import { chatRequest } from '../facades/openai.js';
import { completionRequest } from '../facades/openai-request.js';
import { responsesRequest } from '../facades/responses-request.js';
import { Reader } from '../facades/responses-store.js';
import { badParam } from '../shared/errors.js';
import { refusal } from './serve-refusal.js';

/**
 * The longest text to tokenize, in letters, and the most tokens to make a text of: it is one piece of work, for which
 * replies wait.
 */
const MOST_TEXT = 2 ** 20;
const MOST_IDS = 2 ** 17;

/** Tokens whose texts are made at once. */
const RUN = 2 ** 12;

/** @param {Record<string, boolean>} wanted by a field's name */
function refuseWanted(wanted) {
  const [field] = Object.keys(wanted).filter((name) => wanted[name]);
  if (field)
    throw refusal(400, `${field} is not supported by this version.`, { param: field, code: 'unsupported_parameter' });
}

/** A text by its field. */
function textOf(body, field) {
  const text = body?.[field];
  if (typeof text !== 'string') throw badParam(field, 'must be a string');
  if (text.length > MOST_TEXT) throw badParam(field, `is longer than ${MOST_TEXT} letters`);
  return text;
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Of a model that says nothing of it. */
const NOTHING_ADDED = { before: [], after: [] };

/** A token's text; its bytes, as numbers, where it is a part of a character. @param {Uint8Array} bytes */
function pieceOf(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return [...bytes];
  }
}

/** A text's tokens, with or without those that the model's files want around it. @returns {Promise<Int32Array>} */
async function tokensOf(model, text, isWhole) {
  const ids = Int32Array.from(await model.tokenize(text));
  const { before, after } = model.info.added ?? NOTHING_ADDED;
  return isWhole ? ids : ids.subarray(before.length, ids.length - after.length);
}

/** What each of many tokens becomes, made when it is written. @returns {Promise<Iterable<any>>} */
async function eachOf(model, ids, { turn }, make) {
  // a million letters are a million tokens at worst, but not as many different ones
  const different = await turn(() => [...new Set(ids)]);
  const bytes = await model.detokenize(different, { bytes: true });
  const pieces = new Map();
  for (let at = 0; at < bytes.length; at += RUN) {
    await turn(() => bytes.slice(at, at + RUN).forEach((one, i) => pieces.set(different[at + i], pieceOf(one))));
  }
  return { * [Symbol.iterator]() { for (const id of ids) yield make(id, pieces.get(id)); } };
}

/** Letters of a value, at most; it may be nested to any depth. */
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
 * By their texts the tokens that clients know by name, as far as their ids are known: the only ones that a text alone
 * can be.
 */
async function namedTokens(model) {
  const { endTokens, added = NOTHING_ADDED } = model.info;
  const ids = [...new Set([...endTokens, ...added.before, ...added.after])];
  const texts = await Promise.all(ids.map((id) => model.detokenize([id])));
  return new Map(texts.map((text, i) => [text, ids[i]]));
}

/** Where they read a text, clients take such a token's text for the token. */
async function promptTokens(model, { prompt, add_special_tokens: isWhole }) {
  const named = prompt.length < 100 ? (await namedTokens(model)).get(prompt) : undefined;
  return named === undefined ? tokensOf(model, prompt, isWhole !== false) : [named];
}

/**
 * The tokens of a request's conversation, as the template writes it out.
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

/** What is known of a tokenizer, in transformers' words. */
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

// --- of requests ---

/** Tokens that say what is filled in (reply/fill-in.js). */
const MARKS = 3;

/**
 * Tokens of a request's prompts, as its usage would say.
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
  return { json: { content: text, prompt: text }, holds: text.length };     // llama-server's name, and vLLM's
}

async function applyTemplate(model, body) {
  refuseWanted({ continue_final_message: body?.continue_final_message === true });
  return { json: { prompt: await model.detokenize(await chatTokens(model, body)) } };
}

/**
 * By path and method.
 * @param {(site: any, name: unknown) => void} checkName throws where a request names another model
 * @param {(site: any, key: number) => import('../facades/responses-store.js').Shelf} shelfOf
 * @param {(site: any, asker: import('./serve-queue.js').Asker) => any} modelFor what has tokenize() and detokenize(),
 *   each in its place
 */
export function tokenRoutes(checkName, shelfOf, modelFor) {
  const post = (work) => ({ POST: async (site, body, asker) => work(modelFor(site, asker), body, asker) });
  const inputs = Object.entries(INPUTS).map(([path, count]) => {
    const input = async (site, body, asker) => {
      checkName(site, body?.model);
      return { input_tokens: await count(modelFor(site, asker), body, () => shelfOf(site, asker.key)) };
    };
    // Anthropic's has another name, and says nothing else.
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

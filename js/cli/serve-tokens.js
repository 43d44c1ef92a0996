// SPDX-License-Identifier: MIT
// Texts as tokens and back, for who wants no reply: llama-server's paths, vLLM's of the same names, which lm-eval asks for what it needs of a
// tokenizer, and how many tokens the prompt of a request would have.

import { messagesRequest } from '../facades/messages-request.js';
import { chatRequest } from '../facades/openai.js';
import { completionRequest } from '../facades/openai-request.js';
import { responsesRequest } from '../facades/responses-request.js';
import { Reader } from '../facades/responses-store.js';
import { badParam } from '../shared/errors.js';
import { refusal } from './serve-refusal.js';

/** The longest text to tokenize, in letters, and the most tokens to make a text of: it is one piece of work, for which replies wait. */
const MOST_TEXT = 2 ** 20;
const MOST_IDS = 2 ** 17;

/** @param {Record<string, boolean>} wanted by a field's name */
function refuseWanted(wanted) {
  const [field] = Object.keys(wanted).filter((name) => wanted[name]);
  if (field) throw refusal(400, `${field} is not supported by this version.`, { param: field, code: 'unsupported_parameter' });
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

/** A text's tokens, with or without those that the model's files want around it. */
async function tokensOf(served, text, isWhole) {
  const ids = await served.tokenize(text);
  const { before, after } = served.info.added ?? NOTHING_ADDED;
  return isWhole ? ids : ids.slice(before.length, ids.length - after.length);
}

async function withPieces(served, ids) {
  const different = [...new Set(ids)];      // a million letters are a million tokens at worst, but not as many different ones
  const bytes = await served.detokenize(different, { bytes: true });
  const pieces = new Map(different.map((id, i) => [id, pieceOf(bytes[i])]));
  return ids.map((id) => ({ id, piece: pieces.get(id) }));
}

// --- vLLM's ---

/** By their texts the tokens that clients know by name, as far as their ids are known: the only ones that a text alone can be. */
async function namedTokens(served) {
  const { endTokens, added = NOTHING_ADDED } = served.info;
  const ids = [...new Set([...endTokens, ...added.before, ...added.after])];
  const texts = await Promise.all(ids.map((id) => served.detokenize([id])));
  return new Map(texts.map((text, i) => [text, ids[i]]));
}

/** Where they read a text, clients take such a token's text for the token. */
async function promptTokens(served, { prompt, add_special_tokens: isWhole }) {
  const named = prompt.length < 100 ? (await namedTokens(served)).get(prompt) : undefined;
  return named === undefined ? tokensOf(served, prompt, isWhole !== false) : [named];
}

/** The tokens of a request's conversation, as the template writes it out. @param {string} field its name in the request */
async function conversationTokens(served, { messages, options: { thinking, tools, continue: goesOn } }, field, generationPrompt = true) {
  if (JSON.stringify([messages, tools]).length > MOST_TEXT) throw badParam(field, `are longer than ${MOST_TEXT} letters`);
  return served.tokenize(messages, { thinking, tools, continue: goesOn, generationPrompt });
}

const chatTokens = (served, body) => conversationTokens(served, chatRequest(body), 'messages', body.add_generation_prompt !== false);

async function textsOf(served, ids) {
  return (await withPieces(served, ids)).map(({ piece }) => (typeof piece === 'string' ? piece : '\uFFFD'));
}

async function counted(served, body) {
  const ids = body.messages === undefined ? await promptTokens(served, { ...body, prompt: textOf(body, 'prompt') }) : await chatTokens(served, body);
  const texts = body.return_token_strs === true ? await textsOf(served, ids) : null;
  return { count: ids.length, max_model_len: served.info.contextSize, tokens: ids, token_strs: texts };
}

const NAMES = ['bos_token', 'eos_token', 'pad_token', 'unk_token'];

/** What is known of a tokenizer, in transformers' words. */
async function tokenizerInfo({ served, template }) {
  const { specialTokens = {}, contextSize, added = NOTHING_ADDED } = served.info;
  const named = await namedTokens(served);
  const texts = Object.fromEntries(NAMES.map((name) => [name, named.has(specialTokens[name]) ? specialTokens[name] : null]));
  return { json: {
    ...texts, add_bos_token: added.before.length > 0, add_eos_token: added.after.length > 0, model_max_length: contextSize,
    clean_up_tokenization_spaces: false, chat_template: await template(),
  } };
}

// --- of requests ---

/** Tokens that say what is filled in (reply/fill-in.js). */
const MARKS = 3;

/** Tokens of a request's prompts, as its usage would say. @type {Record<string, (served: any, body: any, shelf: () => any) => Promise<number>>} */
const INPUTS = {
  '/chat/completions': async (served, body) => (await chatTokens(served, body)).length,
  '/messages': async (served, body) => (await conversationTokens(served, messagesRequest(body), 'messages')).length,
  '/responses': async (served, body, shelf) => (await conversationTokens(served, responsesRequest(body, new Reader(shelf())), 'input')).length,
  '/completions': async (served, body) => {
    const { prompts, options: { suffix } } = completionRequest(body, served.info);
    if (JSON.stringify([prompts, suffix]).length > MOST_TEXT) throw badParam('prompt', `is longer than ${MOST_TEXT} letters`);
    const lengthOf = async (text) => (typeof text === 'string' ? (await served.tokenize(text)).length : text.length);
    const more = suffix === undefined ? 0 : MARKS + await lengthOf(suffix);
    const counts = await Promise.all(prompts.map(lengthOf));
    return counts.reduce((sum, count) => sum + count + more, 0);
  },
};

/** By path and method; Anthropic's has another name, and says nothing else. */
function inputRoute([path, count], checkName, shelfOf) {
  const input = async (site, body, scope) => {
    checkName(site, body?.model);
    return { input_tokens: await count(site.served, body, () => shelfOf(site, scope)) };
  };
  if (path === '/messages') return ['/messages/count_tokens', { POST: async (...asked) => ({ json: await input(...asked) }) }];
  return [`${path}/input_tokens`, { POST: async (...asked) => ({ json: { object: 'response.input_tokens', ...await input(...asked) } }) }];
}

// --- llama-server's ---

async function tokenize({ served }, body) {
  if (body?.prompt !== undefined || body?.messages !== undefined) return { json: await counted(served, body) };
  const text = textOf(body, 'content');
  refuseWanted({ parse_special: body.parse_special });
  const ids = await tokensOf(served, text, body.add_special === true);
  return { json: { tokens: body.with_pieces ? await withPieces(served, ids) : ids } };
}

async function detokenize({ served }, body) {
  const { tokens } = body ?? {};
  if (!Array.isArray(tokens)) throw badParam('tokens', 'must be an array of token ids');
  if (tokens.length > MOST_IDS) throw badParam('tokens', `has more than ${MOST_IDS} token ids`);
  const text = await served.detokenize(tokens);
  return { json: { content: text, prompt: text } };     // llama-server's name, and vLLM's
}

async function applyTemplate({ served }, body) {
  refuseWanted({ continue_final_message: body?.continue_final_message === true });
  return { json: { prompt: await served.detokenize(await chatTokens(served, body)) } };
}

/**
 * By path and method.
 * @param {(site: any, name: unknown) => void} checkName throws where a request names another model
 * @param {(site: any, scope: number) => import('../facades/responses-store.js').Shelf} shelfOf
 */
export const tokenRoutes = (checkName, shelfOf) => ({
  '/tokenize': { POST: tokenize }, '/detokenize': { POST: detokenize }, '/apply-template': { POST: applyTemplate },
  '/tokenizer_info': { GET: tokenizerInfo },
  ...Object.fromEntries(Object.entries(INPUTS).map((input) => inputRoute(input, checkName, shelfOf))),
});

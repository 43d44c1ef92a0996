// SPDX-License-Identifier: MIT
// Converts a call of chat() or complete() to a request for a server of the OpenAI API. Options that this API lacks are
// sent under the names of vLLM and llama.cpp's server, and only if they were given, since other servers refuse unknown
// fields.

import { QuernError, badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { FIELDS } from './openai-request.js';
import { toolMessage, toolRequest } from './remote-tools.js';

/** Names in addition to those of the API. */
const ALSO = { repeatPenalty: ['repetition_penalty'] };

/** A bias that forbids a token. */
const NEVER = -100;

/** @param {any} options checked, as for chat() and complete() */
function fieldsOf({ cacheScope, ...options }) {
  const fields = {};
  for (const [option, [field]] of Object.entries(FIELDS)) {
    if (options[option] !== undefined)
      for (const name of [field, ...(ALSO[option] ?? [])]) fields[name] = options[option];
  }
  if (fields.logit_bias)
    fields.logit_bias = Object.fromEntries(
      Object.entries(fields.logit_bias).map(([id, by]) => [id, Math.max(by, NEVER)]),
    );
  if (fields.priority) fields.priority = Number(fields.priority === 'background'); // as in vLLM
  if (cacheScope) fields.cache_salt = String(cacheScope); // vLLM's name for a scope of cached prefixes
  return { ...fields, stream: true, stream_options: { include_usage: true } };
}

/**
 * The constraint of a text, under names that all servers know; following it is up to the server.
 * @param {{schema?: string, json?: boolean}} options
 */
function formatOf({ schema: written, json }) {
  if (written === undefined) return json ? { response_format: { type: 'json_object' } } : {};
  const schema = JSON.parse(written);
  if (!isRecord(schema)) throw badParam('options.schema', 'must be an object for a remote model');
  return { response_format: { type: 'json_schema', json_schema: { name: 'reply', strict: true, schema } } };
}

/** @param {Blob} blob */
async function dataUrl(blob) {
  let letters = '';
  for (const byte of new Uint8Array(await blob.arrayBuffer())) letters += String.fromCharCode(byte);
  return `data:${blob.type || 'application/octet-stream'};base64,${btoa(letters)}`;
}

/** Converts an image to a form that can be sent; refuses other media. */
async function imageOf({ type, image, detail, maxPixels }) {
  const isAddress = (typeof image === 'string' || image instanceof URL) && /^(?:https?|data):/i.test(String(image));
  if (type !== 'image' || maxPixels !== undefined || !(isAddress || image instanceof Blob)) {
    throw badParam(
      'messages',
      'have a part that a remote model does not take: it takes images as Blobs or http: and data: addresses, without maxPixels',
    );
  }
  return {
    type: 'image_url',
    image_url: { url: image instanceof Blob ? await dataUrl(image) : String(image), ...(detail && { detail }) },
  };
}

const contentOf = async (content) => (typeof content === 'string' ? content
  : Promise.all(content.map((part) => (part.type === 'text' ? part : imageOf(part)))));

/**
 * @param {{role: string, content: string | any[], thinking?: string, toolCalls?: any, toolCallId?: any}[]} messages
 *   checked
 */
export async function chatBody(model, messages, { thinking, continue: goesOn, ...options }) {
  const asked = {
    model, ...fieldsOf(options), ...toolRequest(options), ...formatOf(options),
    ...(thinking !== undefined && { chat_template_kwargs: { enable_thinking: thinking } }),
    ...(goesOn && { continue_final_message: true, add_generation_prompt: false }),
  };
  const sent = messages.map(async ({ role, content, thinking: thought, ...more }) => (
    { role, content: await contentOf(content), ...(thought && { reasoning_content: thought }), ...toolMessage(more) }));
  return { ...asked, messages: await Promise.all(sent) };
}

/** Formats a query with an instruction as Qwen3-Embedding does. */
const queryOf = (instruction) => (text) => {
  if (typeof text !== 'string') throw badParam('options.instruction', 'needs texts, not token ids');
  return `Instruct: ${instruction}\nQuery:${text}`;
};

/** A text, or the ids of its tokens. */
function inputOf(given) {
  if (typeof given === 'string') return given;
  if (!Array.isArray(given) && !ArrayBuffer.isView(given))
    throw badParam('texts', 'must be texts, or arrays of token ids');
  return Array.from(/** @type {any} */ (given));
}

/** @param {string} model @param {any} given texts, or ids of their tokens @param {any} how */
export function embedBody(model, given, { instruction, dimensions, ...rest }) {
  const [unknown] = Object.keys(rest).filter((name) => rest[name] != null);
  if (unknown) throw badParam(`options.${unknown.slice(0, 64)}`, 'is not an option of a remote model');
  if (instruction != null && typeof instruction !== 'string') throw badParam('options.instruction', 'must be a text');
  const texts = typeof given === 'string' ? [given] : given;
  if (!Array.isArray(texts)) throw badParam('texts', 'must be an array of texts');
  if (texts.length === 0) throw new QuernError('use/empty', 'There is nothing to do: texts is empty.');
  const input = texts.map(instruction ? queryOf(instruction) : inputOf);
  return { texts, body: { model, input, ...(dimensions != null && { dimensions }), encoding_format: 'float' } };
}

export const completeBody = (model, prompt, options) => ({ model, ...fieldsOf(options), prompt });

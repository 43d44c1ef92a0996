// SPDX-License-Identifier: MIT
// Vectors and ranks as in the OpenAI API and related ones, over a Model and without HTTP: POST /embeddings, and POST
// /rerank as in Jina, vLLM and llama-server. An answer is one object, made by work that can be stopped, like
// completions in openai.js.

import { QuernError, badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';

/** Most texts of a request. */
const MOST = 2048;

/**
 * Encodes little-endian bytes in base64, in pieces that fit into the arguments of a call.
 * @param {Float32Array} vector
 */
export function toBase64(vector) {
  const view = new DataView(new ArrayBuffer(4 * vector.length));
  vector.forEach((value, i) => view.setFloat32(4 * i, value, true));
  let letters = '';
  for (let at = 0; at < view.byteLength; at += 4096)
    letters += String.fromCharCode(...new Uint8Array(view.buffer).subarray(at, at + 4096));
  return btoa(letters);
}

/** @returns {Float32Array} */
export function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

function checkBody(body) {
  if (!isRecord(body)) throw badParam('The body', 'must be a JSON object');
}

function checkCount(list, name) {
  if (list.length === 0) throw badParam(name, 'is empty');
  if (list.length > MOST) throw badParam(name, `has ${list.length} texts, at most ${MOST} are possible`);
}

/** One text, or several. An array that begins with a number is one text of ids. */
function inputsOf({ input }) {
  const isMany = Array.isArray(input) && typeof input[0] !== 'number';
  const inputs = isMany ? input : [input];
  if (isMany) checkCount(inputs, 'input');
  if (inputs.every((one) => typeof one === 'string' || (Array.isArray(one) && one.length > 0))) return inputs;
  throw badParam('input', 'must be a text, an array of token ids, or an array of those');
}

/** Work that ends when nobody waits for it any more. */
class Answer {
  #controller = new AbortController();
  #answer;

  stream = false;

  /** @param {(signal: AbortSignal) => Promise<object>} begin */
  constructor(begin) {
    const { signal } = this.#controller;
    this.#answer = begin(signal).catch((error) => {
      if (signal.aborted && error === signal.reason) return {};
      throw error;
    });
    this.#answer.catch(() => {});
  }

  whole() { return this.#answer; }
  stop() { this.#controller.abort(); }
}

/** Replaces the model's name of an argument by the request's name in errors. */
async function inTerms(work, from, to) {
  try {
    return await work;
  } catch (error) {
    const { param } = error?.detail ?? {};
    if (!param?.startsWith(from)) throw error;
    throw new QuernError(error.code, error.message.replace(from, to), { detail: { param: param.replace(from, to) } });
  }
}

/**
 * Starts a request of POST /embeddings.
 * @param {Pick<import('../index.d.ts').Model, 'embed'>} model
 * @param {any} body parsed JSON
 * @param {{name: string}} identity
 */
export function embedding(model, body, { name }) {
  checkBody(body);
  const { encoding_format: format, dimensions, instruction } = body;
  if (format != null && format !== 'float' && format !== 'base64')
    throw badParam('encoding_format', "must be 'float' or 'base64'");
  const inputs = inputsOf(body);
  return new Answer(async (signal) => {
    const { vectors, tokens, truncated } = await inTerms(
      model.embed(inputs, { dimensions, instruction, signal }),
      'texts',
      'input',
    );
    const data = vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? toBase64(vector) : Array.from(vector),
    }));
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { object: 'list', data, model: name, usage, ...(truncated.length > 0 && { truncated }) };
  });
}

function documentsOf({ documents }) {
  if (!Array.isArray(documents)) throw badParam('documents', 'must be an array of texts');
  checkCount(documents, 'documents');
  return documents.map((one) => (isRecord(one) ? one.text : one));
}

/**
 * Starts a request of POST /rerank: returns the best `top_n` documents.
 * @param {Pick<import('../index.d.ts').Model, 'rank'>} model
 */
export function reranking(model, body, { name }) {
  checkBody(body);
  const { query, top_n: n, return_documents: wantsTexts, instruction } = body;
  if (n != null && (!Number.isInteger(n) || n < 1)) throw badParam('top_n', 'must be a whole number from 1 on');
  const documents = documentsOf(body);
  return new Answer(async (signal) => {
    const ranks = await model.rank(query, documents, { instruction, signal });
    const results = ranks.slice(0, n ?? ranks.length).map(({ index, score }) => (
      { index, relevance_score: score, ...(wantsTexts === true && { document: { text: documents[index] } }) }));
    return { object: 'list', model: name, results };
  });
}

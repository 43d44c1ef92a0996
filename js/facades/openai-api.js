// SPDX-License-Identifier: MIT
// The OpenAI API's paths over a Model, without HTTP. Used by the server (cli/serve-routes.js), by a fetch that never
// leaves the page, and by the client's own calls (openai-client.js).

import { chatCompletion, textCompletion } from './openai.js';
import { embedding, reranking } from './openai-vectors.js';
import { STORED, response } from './responses.js';
import { WIRES } from './sse.js';

/**
 * A path that makes something from a request's body.
 * @typedef {object} Making
 * @property {(model: any, body: any, identity: {name: string, fingerprint: string}, shelf:
 *   import('./responses-store.js').Shelf) => any} begin starts the work
 * @property {typeof WIRES.openai} [wire] how pieces are sent; absent if the answer is a list, which comes whole
 * @property {boolean} [unlessNo] whether answers stream by default
 */

/** Paths that make something. @type {Record<string, Making>} */
export const CREATE = {
  '/chat/completions': { begin: chatCompletion, wire: WIRES.openai },
  '/completions': { begin: textCompletion, wire: WIRES.openai },
  '/embeddings': { begin: embedding },
  '/rerank': { begin: reranking },
  '/reranking': { begin: reranking },
  '/responses': { begin: response, wire: WIRES.named },
};

/**
 * A model in the list of models.
 * @param {import('../index.d.ts').Info} info
 * @param {string} name
 * @param {number} created seconds since 1970
 */
export function modelObject({ contextSize, contextLength, vocabSize, dim, parameters, fileBytes }, name, created) {
  const meta = {
    n_ctx: contextSize,
    n_ctx_train: contextLength,
    n_vocab: vocabSize,
    n_embd: dim,
    n_params: parameters,
    size: fileBytes,
  };
  return { id: name, object: 'model', created, owned_by: 'quern', max_model_len: contextSize, meta };
}

export const listObject = (data) => ({ object: 'list', data });

/** Requests about stored responses, by path and method. @type {typeof STORED} */
export const RESPONSES = Object.fromEntries(
  Object.entries(STORED).map(([rest, methods]) => [`/responses/{id}${rest}`, methods]),
);

/** Paths with a name in them. */
const NAMED = [/(?<start>\/models)\/(?<id>.+)$/, /(?<start>\/responses)\/(?<id>[^/]+)(?<rest>\/[a-z_]+)?$/];

/** Decodes a part of a path; '' if it is not valid. */
function nameIn(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}

/**
 * Finds the name in a path: the path in the form of the tables, the name, and the index where it begins; null if there
 * is none.
 * @returns {{key: string, id: string, at: number} | null}
 */
export function named(path) {
  for (const pattern of NAMED) {
    const found = pattern.exec(path);
    const { start, id, rest = '' } = found?.groups ?? {};
    if (start) return { key: `${start}/{id}${rest}`, id: nameIn(id), at: found.index };
  }
  return null;
}

/** The path below an API's root, with /v1 or without. */
export const pathOf = (path) => path.split('?')[0].replace(/^\/v1(?=\/)/, '');

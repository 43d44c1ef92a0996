// SPDX-License-Identifier: MIT
// The OpenAI API's paths over a Model: what asks and answers JSON, for a server (cli/serve-routes.js), for a fetch that never leaves the page, and
// for the client's own calls (openai-client.js).

import { chatCompletion, textCompletion } from './openai.js';
import { embedding, reranking } from './openai-vectors.js';

/**
 * By path: work that is made of a request's body.
 * @type {Record<string, (model: any, body: any, identity: {name: string, fingerprint: string}) => any>}
 */
export const CREATE = {
  '/chat/completions': chatCompletion, '/completions': textCompletion, '/embeddings': embedding, '/rerank': reranking, '/reranking': reranking,
};

/**
 * A model of the list of models.
 * @param {import('../index.d.ts').Info} info
 * @param {string} name
 * @param {number} created seconds since 1970
 */
export function modelObject({ contextSize, contextLength, vocabSize, dim, parameters, fileBytes }, name, created) {
  const meta = { n_ctx: contextSize, n_ctx_train: contextLength, n_vocab: vocabSize, n_embd: dim, n_params: parameters, size: fileBytes };
  return { id: name, object: 'model', created, owned_by: 'quern', max_model_len: contextSize, meta };
}

export const listObject = (data) => ({ object: 'list', data });

/** The path below an API's root: with /v1 or without. */
export const pathOf = (path) => path.split('?')[0].replace(/^\/v1(?=\/)/, '');

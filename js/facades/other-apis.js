// SPDX-License-Identifier: MIT
// Paths of other APIs than OpenAI's over a Model: Anthropic's, Ollama's and llama-server's own, as a server has them beside openai-api.js's.

import { completion } from './llama-completion.js';
import { message } from './messages.js';
import { chat, embed, embeddings, generate } from './ollama.js';

/**
 * By path: work that is made of a request's body.
 * @type {Record<string, (model: any, body: any, identity: {name: string, fingerprint: string}) => any>}
 */
export const CREATE_OTHER = {
  '/messages': message, '/completion': completion,
  '/api/chat': chat, '/api/generate': generate, '/api/embed': embed, '/api/embeddings': embeddings,
};

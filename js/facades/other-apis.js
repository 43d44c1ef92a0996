// SPDX-License-Identifier: MIT
// Paths of other APIs over a Model, which a server has in addition to openai-api.js: Anthropic's, Ollama's and
// llama-server's own.

import { completion } from './llama-completion.js';
import { message } from './messages.js';
import { chat, embed, embeddings, generate } from './ollama.js';
import { WIRES } from './sse.js';

/** By path. @type {Record<string, import('./openai-api.js').Making>} */
export const CREATE_OTHER = {
  '/messages': { begin: message, wire: WIRES.named },
  '/completion': { begin: completion, wire: WIRES.data },
  '/api/chat': { begin: chat, wire: WIRES.lines, unlessNo: true },
  '/api/generate': { begin: generate, wire: WIRES.lines, unlessNo: true },
  '/api/embed': { begin: embed },
  '/api/embeddings': { begin: embeddings },
};

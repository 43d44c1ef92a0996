// SPDX-License-Identifier: MIT
// The search itself: which entries of the index have all words that were typed, best first. An entry is {title, kind, href, text}.
// Names in camel case count as one word and as their parts: `context size` and `contextsize` both find `contextSize`.

const MOST = 30;

/** What people call things who know another program, and what finds them here. Of whole queries; `_` is no part of them. */
export const MEANS = Object.entries({
  maxTokens: 'max new tokens, max length, n predict, num predict, max completion tokens, max output tokens, token limit',
  contextSize: 'n ctx, num ctx, context length, context window, max position embeddings',
  repeatPenalty: 'repetition penalty, frequency penalty', temperature: 'do sample, greedy, deterministic', seed: 'random seed, reproducible',
  Tools: 'function calling, function call, functions, tool calling, tool use, tool calls, agent, agents',
  'Start here: Stop': 'cancel, abort, interrupt, stop generating, stop generation', 'CallOptions.signal': 'abortcontroller, abortsignal, timeout',
  'CompleteOptions.schema': 'json mode, json schema, structured output, structured outputs, response format, guided decoding, constrained decoding',
  'Zod and TypeBox: typed replies': 'zod, typebox, standard schema, valibot', 'PWA: installed, offline, and what is stored': 'pwa, offline, installable, progressive web app, manifest, service worker cache',
  'useChat in the page': 'usechat, use chat, vercel ai sdk, ai sdk ui, assistant ui', 'quern/ai-sdk': 'ai sdk, vercel',
  'Privacy: what leaves the machine': 'privacy, gdpr, data protection, telemetry, tracking, local first', 'Worker RAG: search and answer beside the page': 'rag, retrieval, vector database, vector store, knowledge base',
  'Search by meaning': 'embeddings, embedding, semantic search, cosine similarity', 'LoadOptions.onProgress': 'download progress, progress bar, loading bar',
  'LoadOptions.quantize': 'quantization, quantisation, 4bit, 8bit, load in 4bit', 'Server routes: Next, Express, any framework': 'express, hono, fastify, api route, route handler',
  'quern/openai': 'openai sdk, openai client, langchain', 'quern/prompt-api': 'languagemodel, chrome ai, built in ai, window.ai',
  'CompleteOptions.stop': 'stop sequences, stop words, stop strings', Thinking: 'reasoning, reasoning effort, chain of thought',
  'Message.role': 'system prompt, system message', 'ChatOptions.save': 'chat history, kv cache, prompt cache', 'Model.dispose': 'unload, free memory, cleanup, memory leak',
}).flatMap(([name, texts]) => texts.split(', ').map((text) => [text, name]));

const meant = new Map(MEANS);

/** What one word is worth, by where it is found. */
const WORTH = { name: 100, word: 60, start: 40, part: 20, textStart: 6, text: 2 };

/** Of two that are found equally well, what people look for comes first. */
const FIRST = { Option: 9, Function: 9, Module: 8, Error: 8, Recipe: 8, Guide: 8, Method: 6, Type: 4 };

/** Words of a title: as written, and the parts of names. */
function wordsOf(title) {
  const parts = title.replace(/([a-z\d])([A-Z])/g, '$1 $2');
  return `${title} ${parts}`.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

/** The last part of a dotted name: what people call an option. */
const nameOf = (title) => title.slice(title.lastIndexOf('.') + 1).toLowerCase();

const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

function worth(word, { title, text }) {
  const words = wordsOf(title);
  if (nameOf(title) === word || title.toLowerCase() === word) return WORTH.name;
  if (words.includes(word)) return WORTH.word;
  if (words.some((one) => one.startsWith(word))) return WORTH.start;
  if (title.toLowerCase().includes(word)) return WORTH.part;
  const body = text.toLowerCase();
  if (!body.includes(word)) return 0;
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped(word)}`, 'u').test(body) ? WORTH.textStart : WORTH.text;
}

/** Entries that have all words, the best first. */
function having(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = [];
  for (const entry of index) {
    const values = words.map((word) => worth(word, entry));
    if (values.every((value) => value > 0)) found.push({ entry, value: values.reduce((sum, value) => sum + value, FIRST[entry.kind] ?? 0) });
  }
  found.sort((a, b) => b.value - a.value || a.entry.title.length - b.entry.title.length);
  return found.map(({ entry }) => entry);
}

/** @returns {object[]} at most thirty entries: what another name means here, then whatever has the words, with `_` or without */
export function find(index, query) {
  const plain = query.toLowerCase().replace(/[_\s-]+/g, ' ').trim();
  const name = meant.get(plain);
  const own = name ? [...index.filter(({ title }) => title === name), ...having(index, name)] : [];
  const queries = query.includes('_') ? [query.replaceAll('_', ''), query] : [query];
  return [...new Set([...own, ...queries.flatMap((one) => having(index, one))])].slice(0, MOST);
}

/** A line or two of an entry's text: from its start, or around the first word that was found there and not in the title. */
export function excerpt({ title, text }, query, length = 150) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word && !title.toLowerCase().includes(word));
  const at = Math.max(0, Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((i) => i >= 0), text.length));
  const start = at < length - 30 || at === text.length ? 0 : text.lastIndexOf(' ', at - 40) + 1;
  const part = text.slice(start, start + length);
  return `${start ? '… ' : ''}${part.length < length ? part : `${part.slice(0, part.lastIndexOf(' '))} …`}`;
}

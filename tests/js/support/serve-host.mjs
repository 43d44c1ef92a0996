// SPDX-License-Identifier: MIT
// Shared by the tests of `quern serve`: a server in this process, with the demo model or a played one, and raw requests
// to it.

import { connect } from 'node:net';
import { Guard } from '../../../js/cli/serve-guard.js';
import { HttpServer } from '../../../js/cli/serve-http.js';
import { Metrics } from '../../../js/cli/serve-metrics.js';
import { ServedModel } from '../../../js/cli/serve-model.js';
import { load } from '../../../js/node.js';
import { Reply } from '../../../js/page/reply.js';
import { DEMO, until } from './helper.mjs';

const WORKER = new URL('../../../dist/worker.node.mjs', import.meta.url);

/** The demo model, loaded by the sources themselves, so that errors have the same class as the server's. */
export const loadDemo = (options) => load(DEMO, { threads: 1, workerUrl: WORKER, ...options });

/**
 * A played model: `play(push, {input, options, signal})` makes a reply, whose promise is its result.
 * @param {(push: Function, call: object) => {promise: Promise<object>, stop?: () => void}} play
 */
export function playedModel(play, more = {}) {
  const reply = (input, options) => new Reply((push) => {
    const { promise, stop = () => {} } = play(push, { input, options });
    const aborted = new Promise((_, reject) => { options.signal?.addEventListener('abort', () => reject(options.signal.reason)); });
    return { promise: Promise.race([promise, aborted]), stop };
  });
  return {
    info: { contextSize: 64, contextLength: 64, parallel: 4, tokens: 100, vocabSize: 100, dim: 8, parameters: 1, fileBytes: 1, endTokens: [5], memory: { used: 7 }, work: { steps: 3, rows: 9, letGo: 1, recomputed: 2, sizes: [1, 0, 2, 0, 0, 0, 0, 0] } },
    logits: async () => new Float32Array(4), tokenize: async (text) => Array.from(text, () => 1), detokenize: async () => 'text',
    chat: reply, complete: reply, dispose: async () => {}, ...more,
  };
}

export const result = (text, more = {}) => ({
  text, thinking: '', finishReason: 'stop', usage: { promptTokens: 3, cachedTokens: 1, completionTokens: 2 },
  timings: { waitMs: 1, prefillMs: 1, decodeMs: 2, tokensPerSecond: 500 }, ...more,
});

/** A reply that writes a word each few milliseconds until it is stopped. */
export function endless(push, { options }, word = 'on ') {
  options.onPrefill?.({ done: 3, total: 3, cached: 0 });
  let text = '';
  let stop;
  const promise = new Promise((resolve) => {
    const timer = setInterval(() => { text += word; push({ type: 'text', text: word }); }, 2);
    stop = () => { clearInterval(timer); resolve(result(text, { finishReason: 'aborted' })); };
    options.signal?.addEventListener('abort', () => clearInterval(timer));
  });
  return { promise, stop };
}

/**
 * @returns {Promise<object>} a server that listens; without a model, one that is still loading. `said`: its messages
 */
export async function startServer({ model, opened, limits, rules, site, reloadMs, queue } = {}) {
  const metrics = new Metrics();
  const said = [];
  const served = new ServedModel({ load: opened ?? (async () => model), metrics, say: (text) => said.push(text), reloadMs, queue });
  const all = {
    served, metrics, name: 'demo', onlyName: false, file: 'demo.gguf', version: '1.2.3', slots: false,
    template: async () => 'template', started: 1, ...site,
  };
  const http = new HttpServer(all, new Guard({ host: '127.0.0.1', ...rules }), limits);
  const port = await http.listen(0, '127.0.0.1');
  if (model || opened) await served.open();
  const base = `http://127.0.0.1:${port}`;
  return {
    served, http, metrics, port, base, said, url: `${base}/v1`,
    idle: (ms) => until(() => served.jobs.length === 0, ms),
    async end() {
      await served.drain(0);
      await http.close(500);
      await served.close();
    },
  };
}

/** Sends bytes, and returns the answer until the connection ends or `enough(text)` is true. */
export function raw(port, bytes, { enough = () => false, end = false } = {}) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8');
    socket.on('error', () => {});
    socket.on('data', (piece) => { text += piece; if (enough(text)) socket.destroy(); });
    socket.on('close', () => resolve(text));
    for (const part of [bytes].flat()) socket.write(part);
    if (end) socket.end();
  });
}

/** A request as text. */
export function request(method, path, { body, headers = {}, host = '127.0.0.1' } = {}) {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const all = { Host: host, ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }), ...headers };
  const lines = Object.entries(all).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`;
}

/** Parses the text of an answer. */
export function parsed(text) {
  const [head, ...rest] = text.split('\r\n\r\n');
  const headers = Object.fromEntries(head.split('\r\n').slice(1).map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]));
  const body = rest.join('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), headers, body, error: /^\{"error":/.test(body) ? JSON.parse(body).error : null };
}

/** Sends one request on a connection of its own. */
export const ask = async (port, method, path, options = {}) => parsed(await raw(port, request(method, path, { ...options, headers: { Connection: 'close', ...options.headers } })));

/** The data of an answer's events. */
export const dataOf = (body) => [...body.matchAll(/^data: (.*)$/gm)].map(([, data]) => (data === '[DONE]' ? data : JSON.parse(data)));

// SPDX-License-Identifier: MIT
// A visit to a page that has the package: the page is served with the headers that isolate it or without, opened in Chromium,
// and asked what came of it (projects/page/main.js). The model comes from another origin, as models do.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { howToStart, launchChromium } from '../web/browser.mjs';
import { PROJECT } from '../fixtures/golden.mjs';
import { QUESTION } from './projects/common/answer.js';
import { once, outputOf } from './workshop.mjs';

/** The demo model, from the project's root. */
export const MODEL = 'web/models/demo-q8_0.gguf';
export const DEMO = join(PROJECT, MODEL);

/** A small model that sees, and its projector. */
const PAIR = ['model', 'mmproj'].map((name) => `tests/fixtures/vision/models/dense/f16/${name}.gguf`);

/** What a page is given behind the #: where the model is, with its hash (which needs a file of the package's own), or a pair of files. */
export const given = async (t, sees) => {
  const host = await openHost(t);
  if (sees) return { model: host + PAIR[0], vision: host + PAIR[1] };
  return { model: host + MODEL, sha256: createHash('sha256').update(readFileSync(DEMO)).digest('hex') };
};

export const ISOLATION = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

/** On all responses, so workers have it too. */
export const TRUSTED = { 'content-security-policy': "require-trusted-types-for 'script'" };

export const OPEN = {
  'access-control-allow-origin': '*', 'access-control-allow-headers': '*', 'access-control-expose-headers': '*', 'cross-origin-resource-policy': 'cross-origin',
};

/** Longest wait for a page's outcome, in ms. */
const PATIENCE_MS = 60_000;

/** A server on a free port, until the test that owns it ends. @returns {Promise<string>} its address */
async function listen(t, answer, onUpgrade) {
  const server = createServer(answer);
  const sockets = new Set();
  server.on('connection', (socket) => { sockets.add(socket.once('close', () => sockets.delete(socket))); });
  if (onUpgrade) server.on('upgrade', onUpgrade);
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://localhost:${server.address().port}/`;
}

/** In front of a server, as nginx might be: the same answers with more headers. Sockets of development servers pass. */
export function front(t, target, headers) {
  const { hostname, port } = new URL(target);
  const pass = ({ url, method, headers: wanted }, response) => {
    if (method === 'OPTIONS') return response.writeHead(204, headers).end();
    const upstream = ask({ hostname, port, path: url, method, headers: { ...wanted, host: `${hostname}:${port}` } }, (answer) => {
      response.writeHead(answer.statusCode, { ...answer.headers, ...headers });
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    return upstream.end();
  };
  const upgrade = ({ url, rawHeaders }, socket) => {
    const lines = rawHeaders.map((text, i) => text + (i % 2 ? '\r\n' : ': ')).join('');
    const upstream = connect(port, hostname, () => upstream.write(`GET ${url} HTTP/1.1\r\n${lines}\r\n`));
    for (const [one, other] of [[upstream, socket], [socket, upstream]]) one.on('error', () => other.destroy()).pipe(other);
  };
  return listen(t, pass, upgrade);
}

/** The project's files on an origin of its own, from which everybody may read: what a host of models is. */
export async function openHost(t) {
  const { url, close } = await serve({ root: PROJECT, isolate: false, csp: false });
  t.after(close);
  return front(t, url, OPEN);
}

let browser;

export async function closeBrowser() {
  await browser?.close();
}

export const chromiumVersion = once(() => `Chromium ${/\d+/.exec(outputOf(howToStart([], true).executablePath, ['--version']))?.[0]}`);

/** Asks until a page has its outcome. @param {() => Promise<object | null>} look @param {string[]} problems of the page's own telling */
export async function outcomeOf(look, problems = []) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const outcome = await look();
    if (outcome) return outcome;
    if (Date.now() > end) throw new Error(`nothing came of it within ${PATIENCE_MS / 1000} s${problems.length ? `: ${problems[0]}` : ''}`);
    await new Promise((done) => { setTimeout(done, 50); });
  }
}

/** Opens pages in one Chromium, all at once. @returns {Promise<object[]>} what came of each, with what the console had to say, and who was asked */
export async function visitAll(urls) {
  browser ??= await launchChromium([], true);
  const context = await browser.newContext();
  const asked = [];
  context.on('request', (request) => asked.push(request.url()));
  const look = async (url) => {
    const problems = [];
    const page = await context.newPage();
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) problems.push(message.text()); });
    await page.goto(url);
    return { ...await outcomeOf(() => page.evaluate(() => globalThis.outcome).catch(() => null), problems), problems, asked };
  };
  try {
    return await Promise.all(urls.map(look));
  } finally {
    await context.close();
  }
}

export const visit = async (url) => (await visitAll([url]))[0];

/** What the command line replies in this Node, on one thread with the reference kernels, behind a line of thinking. */
export const reference = once(() => {
  const args = ['dist/cli.js', 'chat', DEMO, QUESTION, '--think', '--temperature', '0', '--threads', '1', '--variant', 'scalar'];
  const [, reply] = /^[^\n]+\n\n(.*)\n$/s.exec(execFileSync(process.execPath, args, { cwd: PROJECT, encoding: 'utf8' }));
  return reply;
});

/** Fails unless a place did what it should. @returns {{threads: number, first: number}} for its row */
export function judge({ error, text, threads, first, city, vectors, seen, problems = [] }, expected) {
  if (error) throw new Error([error, ...problems].join('\n'));
  if (expected.sees) assert.ok(seen > 0, 'nothing was seen');
  else {
    assert.equal(text, reference(), 'the reply is another one than that of the reference kernels');
    assert.match(String(city), /^(Nairobi|Oslo)$/, 'a reply in a form');
    assert.equal(vectors, 2, 'vectors');
  }
  assert.equal(threads, expected.threads, [`${threads} threads instead of ${expected.threads}`, ...problems].join('\n'));
  return { threads, first };
}

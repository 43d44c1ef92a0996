// SPDX-License-Identifier: MIT
// An honest client of a server: short streamed chats, some with a schema, tools or an image, one after another.
// Measures the time to the first token and between tokens.

import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { random as seeded } from '../../fixtures/random.mjs';
import { imagePath } from '../../fixtures/vision/golden.mjs';
import { request } from '../support/serve-host.mjs';

/** A reply that has not begun or ended after this time counts as if it did so then. */
const PATIENCE_MS = 40_000;

const SCHEMA = { type: 'object', properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer' } }, required: ['name', 'age'] };
const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 12 } }, required: ['city'] } } }];
const PICTURE = `data:image/png;base64,${readFileSync(imagePath('exact.png')).toString('base64')}`;

const chat = (content, more) => ({ messages: [{ role: 'user', content }], stream: true, temperature: 0.7, max_tokens: 12, logit_bias: {}, ...more });

const ASKED = [
  (i) => chat(`How are you today, number ${i}?`),
  (i) => chat(`Tell me about the river, the mill and the ${i} owls.`),
  (i) => chat(`Who is it, ${i}?`, { response_format: { type: 'json_schema', json_schema: { name: 'who', schema: SCHEMA } } }),
  (i) => chat(`What is the weather in town ${i}?`, { tools: TOOLS, tool_choice: 'required' }),
  (i, sees) => chat(sees ? [{ type: 'text', text: `Look, ${i}: ` }, { type: 'image_url', image_url: { url: PICTURE } }] : `Look, ${i}.`),
];

/** @returns {Promise<{status: number, first: number, gaps: number[], error: string}>} in ms */
export function ask(port, key, body) {
  return new Promise((resolve) => {
    const begun = performance.now();
    const told = { status: 0, first: NaN, gaps: [], error: '' };
    let last = 0;
    let head = '';
    const socket = connect(port, '127.0.0.1');
    const timer = setTimeout(() => { told.error = 'late'; socket.destroy(); }, PATIENCE_MS);
    socket.setEncoding('utf8');
    socket.on('error', () => {});
    socket.on('data', (text) => {
      if (!told.status) {
        head += text;
        told.status = Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1] ?? 0);
        if (told.status !== 200) told.error = head.slice(-200);
      }
      if (/"error"/.test(text)) told.error = text.slice(0, 200);
      if (!/"(?:content|arguments|reasoning_content)":"[^"]/.test(text)) return;
      const now = performance.now();
      if (last) told.gaps.push(now - last);
      else told.first = now - begun;
      last = now;
    });
    socket.on('close', () => {
      clearTimeout(timer);
      const end = performance.now();
      if (!last && told.error === 'late') told.first = end - begun;
      else if (told.error === 'late') told.gaps.push(end - last);
      resolve(told);
    });
    socket.write(request('POST', '/v1/chat/completions', { body, headers: { 'X-Api-Key': key, Connection: 'close' } }));
  });
}

/**
 * Sends requests until the time is over, the same ones in the same order for the same seed.
 * @returns {Promise<Awaited<ReturnType<typeof ask>>[]>}
 */
export async function honest({ port, key, seed, sees, until }) {
  const random = seeded(seed);
  const all = [];
  await new Promise((done) => { setTimeout(done, 200 * random()); });
  for (let i = 0; performance.now() < until; i++) {
    const make = ASKED[Math.floor(random() * ASKED.length)];
    all.push(await ask(port, key, make(`${seed} ${i}`, sees)));
    await new Promise((done) => { setTimeout(done, 100 * random()); });
  }
  return all;
}

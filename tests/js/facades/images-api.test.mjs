// SPDX-License-Identifier: MIT
// Images over the OpenAI API: those that come with a request reach the model, those that somebody would have to fetch are refused; and what of
// images a remote model is sent.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { remote } from '../../../dist/remote.js';
import { chatCompletion, chatRequest } from '../../../js/facades/openai.js';
import { PAIR, imagePath } from '../../fixtures/vision/golden.mjs';
import { rejectsWith, withServer } from '../support/helper.mjs';

const FILE = readFileSync(imagePath('exact.png'));
const DATA = `data:image/png;base64,${FILE.toString('base64')}`;
const asked = (...content) => ({ messages: [{ role: 'user', content }], max_tokens: 2, temperature: 0 });
const image = (url) => ({ type: 'image_url', image_url: { url } });
const text = (words) => ({ type: 'text', text: words });

test('an image in the request is looked at', async () => {
  const model = await load(PAIR.source, { ...PAIR.options, threads: 1 });
  const { usage } = await chatCompletion(model, asked(text('Look: '), image(DATA), text(' Well?')), { name: 'x', fingerprint: 'y' }).whole();
  const bare = await chatCompletion(model, asked(text('Look: '), text(' Well?')), { name: 'x', fingerprint: 'y' }).whole();
  assert.equal(usage.prompt_tokens - bare.usage.prompt_tokens, 12 + 2);
  await model.dispose();
});

test('nothing is fetched or read for a request', () => {
  for (const url of ['https://example.org/a.png', '/etc/passwd', 'file:///etc/passwd', 'blob:x', 'data:text/html,x', '', 5, undefined]) {
    assert.throws(() => chatRequest(asked(image(url))), { code: 'use/param', detail: { param: 'messages[0].content[0].image_url', reason: 'unsupported_parameter' } });
  }
  assert.throws(() => chatRequest(asked({ type: 'input_audio' })), /must be text or image_url/);
  assert.equal(chatRequest(asked(text('a'), text('b'))).messages[0].content, 'ab');
});

test('a remote model is sent addresses, and files as data', async () => {
  const bodies = [];
  await withServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.method === 'GET') return response.end(JSON.stringify({ data: [{ id: 'm' }] }));
    bodies.push(JSON.parse(body));
    return response.end('data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
  }, async (base) => {
    const far = await remote(base);
    const chat = (...content) => far.chat([{ role: 'user', content }]).result;
    await chat(text('Well?'), { type: 'image', image: new Blob([FILE], { type: 'image/png' }), detail: 'low' }, { type: 'image', image: 'https://example.org/a.png' }, image(DATA));
    assert.deepEqual(bodies[0].messages[0].content, [
      text('Well?'), { type: 'image_url', image_url: { url: DATA, detail: 'low' } }, image('https://example.org/a.png'), image(DATA),
    ]);
    const pixels = { data: new Uint8Array(12), width: 2, height: 2 };
    for (const part of [{ type: 'image', image: pixels }, { type: 'image', image: 'a.png' }, { type: 'video', video: { frames: [pixels] } }, { type: 'image', image: new Blob(), maxPixels: 4096 }]) {
      await rejectsWith(chat(part), 'use/param', /does not take/);
    }
    await rejectsWith(far.chat('x', { numberImages: true }).result, 'use/param', /numberImages/);
    await rejectsWith(far.look(), 'use/param');
    assert.equal(bodies.length, 1);
  });
});

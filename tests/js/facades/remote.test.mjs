// SPDX-License-Identifier: MIT
// quern/remote as the package has it: over `quern serve` it says what the model says; other servers' ways and failures, played.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { remote } from '../../../dist/remote.js';
import { eventsOf } from '../../../js/facades/sse.js';
import { random } from '../../fixtures/random.mjs';
import { collect, rejectsWith, rejectsWithAbort, until, withServer } from '../support/helper.mjs';
import { loadDemo, startServer } from '../support/serve-host.mjs';

const QUESTION = 'What is the capital of Kenya?';

let model;
let server;
let far;
before(async () => {
  model = await loadDemo();
  server = await startServer({ model, rules: { keys: ['secret'] } });
  far = await remote(server.url, { apiKey: 'secret', model: 'demo' });
});
after(() => server?.end());

const outcome = ({ text, thinking, finishReason, usage: { promptTokens, completionTokens } }) => ({ text, thinking, finishReason, promptTokens, completionTokens });

/** Writes until it is stopped, or has 2,000 tokens. */
const endless = () => ({ temperature: 0, maxTokens: 2000, logitBias: Object.fromEntries(model.info.endTokens.map((id) => [id, -Infinity])) });

test('it says what the loaded model says, with the same options', async () => {
  for (const options of [
    { temperature: 0 }, { seed: 5, temperature: 1.3, topK: 40, topP: 0.9, minP: 0.05 }, { seed: 5, maxTokens: 4 }, { seed: 9, thinking: true, maxTokens: 100 },
    { temperature: 0, stop: 'of' }, { temperature: 0, repeatPenalty: 1.5 }, { temperature: 0, presencePenalty: 2, frequencyPenalty: 1 }, { temperature: 0, logitBias: { [model.info.endTokens[0]]: -Infinity }, maxTokens: 50 },
  ]) {
    assert.deepEqual(outcome(await far.chat(QUESTION, options).result), outcome(await model.chat(QUESTION, options).result), JSON.stringify(options));
  }
  const begun = [{ role: 'user', content: QUESTION }, { role: 'assistant', content: 'The capital' }];
  assert.deepEqual(outcome(await far.chat(begun, { temperature: 0, continue: true }).result), outcome(await model.chat(begun, { temperature: 0, continue: true }).result));
  const same = { temperature: 0, maxTokens: 20 };
  assert.deepEqual(outcome(await far.complete('Once upon', same).result), outcome(await model.complete('Once upon', same).result));
});

test('its vectors are the loaded model\'s', async () => {
  const texts = ['What is quern?', 'A hand mill.'];
  for (const options of [undefined, { dimensions: 8 }, { instruction: 'Find it' }]) assert.deepEqual((await far.embed(texts, options)).vectors, (await model.embed(texts, options)).vectors);
  assert.equal((await far.embed('one')).vectors.length, 1);
  for (const [given, code] of [[[[]], 'use/empty'], [[7], 'use/param'], [['a', { normalize: false }], 'use/param'], [['a', { dimensions: 10 ** 5 }], 'use/param'], [[[[1]], { instruction: 'x' }], 'use/param']]) {
    await rejectsWith(far.embed(...given), code);
  }
  await rejectsWith(far.rank('q', ['a']), 'use/param');
  await rejectsWithAbort(far.embed('a', { signal: AbortSignal.abort() }));
  await withServer((request, response) => response.end(request.url.endsWith('/models') ? '{"data":[{"id":"x"}]}' : '{"data":[{"index":0}]}'), async (base) => {
    const poor = await remote(base);
    await rejectsWith(poor.embed('a'), 'net/truncated', /unusable answer/);
    await poor.dispose();
    await rejectsWith(poor.embed('a'), 'engine/disposed');
  });
  for (const answer of ['null', '5', '{"data":[null]}', '{"data":[{"index":0,"embedding":"%"}]}', '{"data":[{"index":0,"embedding":{"length":1e12}}]}', '{"data":[{"index":0,"embedding":["x"]}]}', '{']) {
    await against((response) => response.end(answer), (it) => rejectsWith(it.embed('a'), 'net/truncated', /unusable answer/));
  }
  for (const given of [[null], [{ length: 1e12 }], ['a', 5]]) await rejectsWith(far.embed(given), 'use/param');
});

test('what only a loaded model can keep is refused by name; what asks for nothing is not', async () => {
  for (const [name, value] of Object.entries({
    save: 'x', numberImages: true, overflow: 'drop', choices: ['a', 'b'], regex: 'a+', grammar: 'root ::= "a"', whitespace: 'compact', logprobs: 0,
  })) await rejectsWith(far.chat(QUESTION, { [name]: value }).result, 'use/param', new RegExp(`^options\\.${name} works with loaded models only`));
  for (const [name, value] of Object.entries({ schema: {}, promptLogprobs: 1, suffix: 'y' })) {
    await rejectsWith(far.complete('x', { [name]: value }).result, 'use/param', new RegExp(`^options\\.${name} works`));
  }
  const nothing = { temperature: 0, maxTokens: 3, numberImages: false, overflow: 'error', json: false, schema: null };
  assert.equal((await far.chat(QUESTION, nothing).result).text, (await far.chat(QUESTION, { temperature: 0, maxTokens: 3 }).result).text);
});

test('two mistakes at once are one failure', async () => {
  const image = [{ role: 'user', content: [{ type: 'image', image: 'photo.png' }] }];
  await rejectsWith(far.chat(image, { tools: {} }).result, 'use/param', /tools/);
  await rejectsWith(far.chat([...image, ...image]).result, 'use/param', /images/);
  await rejectsWith(far.chat([{ role: 'assistant', content: '', toolCalls: [null] }]).result, 'use/param', /^messages/);
});

test('text comes as it is made, thinking apart', async () => {
  const pieces = await collect(far.chat(QUESTION, { temperature: 0 }));
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(''), (await model.chat(QUESTION, { temperature: 0 }).result).text);
  const events = await collect(far.chat(QUESTION, { temperature: 0, thinking: true, maxTokens: 60 }).events);
  assert.equal(events[0].type, 'thinking');
  const { timings } = await far.chat(QUESTION, { temperature: 0 }).result;
  assert.ok(timings.prefillMs > 0 && timings.decodeMs >= 0 && timings.tokensPerSecond > 0);
});

test('stop, break and signal end the work there', async () => {
  const long = endless();
  const stopped = far.chat(QUESTION, long);
  for await (const text of stopped) if (text) stopped.stop();
  const { finishReason, text } = await stopped.result;
  assert.deepEqual([finishReason, text.length > 0], ['aborted', true]);
  const left = far.chat(QUESTION, long);
  for await (const _ of left) break;
  assert.equal((await left.result).finishReason, 'aborted');
  const controller = new AbortController();
  const aborted = far.chat(QUESTION, { ...long, signal: controller.signal });
  await until(() => server.served.jobs.length > 0);
  controller.abort();
  await rejectsWithAbort(aborted.result);
  await rejectsWith(far.chat(QUESTION, { save: 'x' }).result, 'use/param', /^options\.save works with loaded models only/);
  await rejectsWithAbort(far.chat(QUESTION, { signal: AbortSignal.abort() }).result);
  await server.idle(5000);
});

test('info is what the server says; what needs a loaded model is refused', async () => {
  assert.deepEqual([far.info.id, far.info.name, far.info.contextSize, far.info.owned_by], ['demo', 'demo', model.info.contextSize, 'quern']);
  assert.throws(() => { far.info.name = 'x'; }, TypeError);
  for (const name of ['tokenize', 'detokenize', 'countTokens', 'logits', 'profile', 'saved', 'forget']) await rejectsWith(far[name]('x'), 'use/param', new RegExp(`^${name}\\(\\)`));
});

test('wrong arguments and what the server refuses have the codes they have here', async () => {
  for (const [reply, code, words] of [
    [far.chat(5), 'use/param', /^messages/], [far.chat(QUESTION, { temperature: 'hot' }), 'use/param', /^options\.temperature/], [far.chat(QUESTION, { thread: 1 }), 'use/param', /^options\.thread/],
    [far.complete([1, 2]), 'use/param', /^prompt/], [far.chat('What? '.repeat(9000)), 'use/context', /tokens/], [far.complete(''), 'use/param', /empty/],
  ]) await rejectsWith(reply.result, code, words);
  assert.equal((await rejectsWith(remote(server.url, { apiKey: 'wrong' }), 'net/http', /key/)).detail.status, 401);
  await rejectsWith(remote(server.url, { apiKey: 'secret', model: 'other' }), 'use/param', /options\.model is not one of the server's models: demo/);
  for (const url of ['demo', 'file:///x', '', 'ftp://x/v1']) await rejectsWith(remote(url), 'use/param', /^url/);
  for (const [options, words] of [[{ apiKey: 'a\nb' }, /^options\.apiKey/], [{ headers: { 'a b': 'c' } }, /^options\.headers/], [{ headers: { a: 'secret\nx' } }, /^options\.headers/], [{ model: 5 }, /^options\.model/]]) {
    const error = await remote(server.url, options).catch((reason) => reason);
    assert.match(error.message, words);
    assert.ok(!/secret|a\nb/.test(error.message));
  }
  await rejectsWith(remote('http://127.0.0.1:1/v1'), 'net/unreachable', /127\.0\.0\.1:1/);
  await rejectsWithAbort(remote(server.url, { signal: AbortSignal.abort() }));
});

test('after dispose() what goes on fails, and so does what comes', async () => {
  const own = await remote(`${server.url}/`, { apiKey: 'secret' });
  const reply = own.chat(QUESTION, endless());
  await until(() => server.served.jobs.length > 0);
  await own.dispose();
  await own[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
  await rejectsWith(reply.result, 'engine/disposed');
  await rejectsWith(own.chat(QUESTION).result, 'engine/disposed');
  await server.idle(5000);
  const other = await remote(server.url, { apiKey: 'secret' });
  const begun = other.chat(QUESTION, endless());
  await other.dispose();
  await rejectsWith(begun.result, 'engine/disposed');
  assert.equal(server.served.jobs.length, 0);
});

// --- other servers ---

const LIST = JSON.stringify({ object: 'list', data: [{ id: 'first', max_model_len: 32 }, { id: 'second' }] });
const event = (data) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
const delta = (fields, finish_reason = null) => event({ choices: [{ index: 0, delta: fields, finish_reason }] });

/** What a model of a server says that answers a request for a reply so. */
function against(answer, use, options) {
  return withServer(async (request, response) => {
    if (request.url === '/v1/models') return response.setHeader('Content-Type', 'application/json').end(LIST);
    let body = '';
    for await (const piece of request) body += piece;
    return answer(response, JSON.parse(body), request);
  }, async (base) => use(await remote(`${base}/v1`, options), base));
}

const stream = (...events) => (response) => { response.writeHead(200, { 'Content-Type': 'text/event-stream' }); response.end(events.join('')); };

test('the ways in which other servers stream', async () => {
  for (const [events, said, thinking = ''] of [
    [[delta({ role: 'assistant', content: '' }), delta({ content: 'a' }), delta({ content: 'b' }), delta({}, 'stop'), event('[DONE]')], 'ab'],
    [[delta({ reasoning: 'hm' }), delta({ content: 'a' }, 'stop'), event('[DONE]')], 'a', 'hm'], [[delta({ role: 'assistant', content: null }), delta({ content: 'a' }), delta({ content: null }, 'length')], 'a'],
    [[': comment\r\n\r\nevent: x\r\nid: 5\r\ndata:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\n', delta({}, 'stop'), event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })], 'a'],
    [[event({ choices: null, usage: null }), 'data: {"choices":\ndata: [{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n', event('[DONE]'), delta({ content: 'never' })], 'a'],
  ]) {
    await against(stream(...events), async (it) => {
      const { text: got, thinking: thought } = await it.chat('x').result;
      assert.deepEqual([got, thought], [said, thinking]);
    });
  }
  const text = `${delta({ content: 'ä🙂\u2028' })}${delta({}, 'stop')}`;
  for (const sent of [text, text.replaceAll('\n', '\r\n')]) {
    await against(async (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      for (const byte of Buffer.from(sent)) {
        response.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      response.end();
    }, async (it) => assert.equal((await it.chat('x').result).text, 'ä🙂\u2028'));
  }
});

test('events are the same in whatever pieces they come, and take no time by the square of them', { timeout: 20_000 }, async () => {
  const draw = random(4);
  const said = async (text, most) => {
    const bytes = Buffer.from(text);
    async function* pieces() { for (let at = 0, n; at < bytes.length; at += n) yield bytes.subarray(at, at + (n = 1 + Math.floor(most * draw()))); }
    return collect(eventsOf(pieces()));
  };
  for (let round = 0; round < 300; round++) {
    const parts = ['data: ä', 'data:b', ': c', '\n', '\n', '\r\n', '\r', 'x', 'data'];
    const text = `${Array.from({ length: Math.floor(30 * draw()) }, () => parts[Math.floor(parts.length * draw())]).join('')}\n\n\n`;
    assert.deepEqual(await said(text, 3), await said(text, 1e6), JSON.stringify(text));
  }
  const [event_] = await said(`data: ${'x'.repeat(1_000_000)}\n\n`, 2);
  assert.equal(event_.length, 1_000_000);
});

test('what is asked of a server is in its terms, and only what was given', async () => {
  let seen;
  await against((response, body, request) => {
    seen = { body, headers: request.headers };
    stream(delta({}, 'stop'))(response);
  }, async (it) => {
    assert.deepEqual([it.info.name, it.info.contextSize], ['second', 0]);
    await it.chat([{ role: 'assistant', content: 'a', thinking: 'b' }, { role: 'user', content: 'c' }]).result;
    assert.deepEqual(seen.body, { model: 'second', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'assistant', content: 'a', reasoning_content: 'b' }, { role: 'user', content: 'c' }] });
    assert.deepEqual([seen.headers.authorization, seen.headers['x-more']], ['Bearer key', 'yes']);
    await it.chat('c', { thinking: false, maxTokens: 5, repeatPenalty: 1.1, cacheScope: 7, logitBias: { 5: -Infinity } }).result;
    const { messages, model: _, stream: __, stream_options: ___, ...rest } = seen.body;
    assert.deepEqual(rest, { max_tokens: 5, repeat_penalty: 1.1, repetition_penalty: 1.1, logit_bias: { 5: -100 }, cache_salt: '7', chat_template_kwargs: { enable_thinking: false } });
  }, { apiKey: 'key', model: 'second', headers: { 'X-More': 'yes' } });
});

test('a form of the text is asked for by response_format, with tools too; the value is what the text says', async () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  const asked = [];
  const answer = (text, reason = 'stop') => (response, body) => { asked.push(body); stream(delta({ content: text }, reason))(response); };
  const tools = [{ name: 'f' }];
  await against(answer('{"a":1}'), async (it) => {
    assert.deepEqual((await it.chat('x', { schema, tools, parallelToolCalls: false }).result).value, { a: 1 });
    assert.deepEqual([asked[0].response_format, asked[0].parallel_tool_calls], [{ type: 'json_schema', json_schema: { name: 'reply', strict: true, schema } }, false]);
    assert.deepEqual((await it.chat('x', { json: true, parallelToolCalls: false }).result).value, { a: 1 });
    assert.deepEqual([asked[1].response_format, 'parallel_tool_calls' in asked[1], 'value' in (await it.chat('x').result)], [{ type: 'json_object' }, false, false]);
    await it.chat('x', { schema, openObjects: true }).result;
    assert.equal(asked.at(-1).open_objects, true);
    await it.chat('x', { tools, toolChoice: { names: ['f'], required: true } }).result;
    assert.deepEqual(asked.at(-1).tool_choice, { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] } });
    await rejectsWith(it.chat('x', { schema: true }).result, 'use/param', /^options\.schema/);
  });
  for (const cut of [answer('{"a":'), answer('{"a":1}', 'length')]) await against(cut, async (it) => assert.ok(!('value' in await it.chat('x', { schema }).result)));
});

test('servers that fail, break off, say nonsense, or nothing', { timeout: 30_000 }, async () => {
  const status = (code, body) => (response) => response.writeHead(code, { 'Content-Type': 'application/json' }).end(body);
  const open = (response, text) => { response.writeHead(200, { 'Content-Type': 'text/event-stream' }); response.write(text); };
  for (const [answer, code, words] of [
    [status(429, '{"error":{"message":"Slowly."}}'), 'use/busy', /^Slowly\.$/], [status(400, '{"error":{"message":"Bad x.","param":"x"}}'), 'use/param', /^Bad x\.$/],
    [status(400, '{"error":{"message":"Long.","code":"context_length_exceeded"}}'), 'use/context', /Long/], [status(500, '<html>'), 'net/http', /status 500/], [status(404, '{"detail":"x"}'), 'net/http', /404/],
    [stream(delta({ content: 'a' })), 'net/truncated', /too early/], [stream(event('{nonsense')), 'net/truncated', /unusable reply/], [stream(event('null')), 'net/truncated', /unusable reply/],
    [stream(delta({ content: 'a' }), event({ error: { message: 'Broken.' } })), 'net/http', /^Broken\.$/], [stream('<html>'), 'net/truncated', /too early/],
    [(response) => { open(response, delta({ content: 'a' })); setTimeout(() => response.destroy(), 30); }, 'net/truncated', /broke off|unusable reply/],
    [(response) => open(response, delta({ content: 'a' })), 'net/stalled', /nothing for 0\.2 seconds/],
    [(response) => response.writeHead(302, { Location: 'http://127.0.0.1:9/' }).end(), 'net/unreachable', /./],
    [(response) => { open(response, 'data: '); for (let i = 0; i < 80; i++) response.write('x'.repeat(2 ** 16)); }, 'net/truncated', /unusable reply/],
    [(response) => { open(response, ''); for (let i = 0; i < 80; i++) response.write('data: x\ndata:\n'.repeat(2 ** 14)); }, 'net/truncated', /unusable reply/],
    [() => {}, 'net/stalled', /nothing for 0\.2 seconds/],
    [(response) => { response.writeHead(500); response.write('{'); }, 'net/http', /status 500/],
  ]) await against(answer, (it) => rejectsWith(it.chat('x').result, code, words), { silenceMs: code === 'net/stalled' || /500/.test(words.source) ? 200 : 20_000 });
  for (const list of ['[]', '{"data":[]}', 'x', '{"data":{}}', '{"data":[null,{"id":5}]}', 'null']) {
    await withServer((request, response) => response.end(list), (base) => rejectsWith(remote(base), 'net/http', /no models/));
  }
  await withServer((request, response) => response.end('{"data":[null,{"id":"x"}]}'), async (base) => assert.equal((await remote(base)).info.id, 'x'));
  await withServer(() => {}, (base) => rejectsWith(remote(base, { silenceMs: 200 }), 'net/stalled'));
  await withServer((request, response) => response.write('{'), (base) => rejectsWith(remote(base, { silenceMs: 200 }), 'net/stalled'));
  await against(stream(delta({ content: 'a' }), delta({}, 'constructor')), async (it) => assert.equal((await it.chat('x').result).finishReason, 'stop'), { silenceMs: Infinity });
  for (const silenceMs of [0, -1, 2 ** 31, 'x', NaN]) await rejectsWith(remote(server.url, { apiKey: 'secret', silenceMs }), 'use/param', /^options\.silenceMs/);
  assert.equal((await remote(server.url, { apiKey: 'secret', silenceMs: null })).info.id, 'demo');
});

test('it is a module of its own: the core has nothing of it, and it nothing of Node', async () => {
  const text = await readFile(new URL('../../../dist/remote.js', import.meta.url), 'utf8');
  assert.doesNotMatch(text, /["']node:|new Worker|from["']/);
  for (const name of ['index.js', 'node.js', 'worker.js']) assert.doesNotMatch(await readFile(new URL(`../../../dist/${name}`, import.meta.url), 'utf8'), /chat\/completions/);
});

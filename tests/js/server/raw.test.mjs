// SPDX-License-Identifier: MIT
// `quern serve` against whoever is no well-behaved client: every limit and refusal over plain sockets, requests in one piece, connections that
// send slowly, read nothing or go away in any phase. Nothing of theirs may go on, and nothing of others' may end.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { LIMITS } from '../../../js/cli/serve-http.js';
import { QuernError, badParam } from '../../../js/shared/errors.js';
import { length } from '../../fixtures/lengths.mjs';
import { random as seeded } from '../../fixtures/random.mjs';
import { until } from '../support/helper.mjs';
import { ask, dataOf, endless, loadDemo, parsed, playedModel, raw, request, result, startServer } from '../support/serve-host.mjs';

const MESSAGES = [{ role: 'user', content: 'Hi' }];
const CHAT = '/v1/chat/completions';

/** A model that answers at once. */
const prompt = (push, { options }) => {
  options.onPrefill({ done: 1, total: 1, cached: 0 });
  push({ type: 'text', text: 'well' });
  return { promise: Promise.resolve(result('well')) };
};

let server;
before(async () => { server = await startServer({ model: playedModel(prompt) }); });
after(() => server?.end());

/** A server of its own, while it is used. */
async function withOne(options, use) {
  const one = await startServer({ model: playedModel(prompt), ...options });
  try {
    return await use(one);
  } finally {
    await one.end();
  }
}

// --- 6.3: refusals ---

test('each refusal has its status, type and code, as JSON', async () => {
  const chat = (body, more) => ['POST', CHAT, { body, ...more }];
  for (const [[method, path, options], status, type, code] of [
    [chat({ messages: MESSAGES }), 200], [chat({ messages: 5 }), 400, 'invalid_request_error', 'invalid_value'],
    [chat({ messages: MESSAGES, tools: [{}] }), 400, 'invalid_request_error', 'unsupported_parameter'],
    [chat('{"messages": '), 400, 'invalid_request_error', 'invalid_request'], [chat('[]'), 400, 'invalid_request_error', 'invalid_value'],
    [chat('null'), 400, 'invalid_request_error', 'invalid_value'], [chat(''), 400, 'invalid_request_error', 'invalid_request'],
    [chat({ messages: Array.from({ length: 10_001 }, () => MESSAGES[0]) }), 400, 'invalid_request_error', 'invalid_value'],
    [['GET', '/v1/nowhere'], 404, 'invalid_request_error', 'not_found'], [['GET', '/../../etc/passwd'], 404, 'invalid_request_error', 'not_found'],
    [['GET', 'http://127.0.0.1/health'], 404, 'invalid_request_error', 'not_found'], [['GET', '/v1/v1/models'], 404, 'invalid_request_error', 'not_found'],
    [['GET', '/constructor'], 404, 'invalid_request_error', 'not_found'], [['GET', '/v1/models/%ff'], 200],
    [['GET', CHAT], 405, 'invalid_request_error', 'method_not_allowed'], [['DELETE', '/v1/models'], 405, 'invalid_request_error', 'method_not_allowed'],
    [['OPTIONS', CHAT], 405, 'invalid_request_error', 'method_not_allowed'], [['GET', '/__proto__'], 404, 'invalid_request_error', 'not_found'],
    [chat({ messages: MESSAGES }, { headers: { 'Content-Type': 'text/plain' } }), 415, 'invalid_request_error', 'unsupported_media_type'],
    [chat({ messages: MESSAGES }, { headers: { 'Content-Type': undefined } }), 415, 'invalid_request_error', 'unsupported_media_type'],
    [chat({ messages: MESSAGES }, { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }), 415, 'invalid_request_error', 'unsupported_media_type'],
    [chat({ messages: MESSAGES }, { headers: { 'Content-Type': 'Application/JSON; charset=utf-8' } }), 200],
    [chat({ messages: MESSAGES }, { headers: { 'Content-Encoding': 'gzip' } }), 415, 'invalid_request_error', 'unsupported_media_type'],
    ...[{}, { input: [] }, { input: 7 }, { input: ['a', 7] }, { input: [[]] }, { input: 'a', encoding_format: 'int8' }, { input: Array(2049).fill('a') }].map((body) => (
      [['POST', '/v1/embeddings', { body }], 400, 'invalid_request_error', 'invalid_value'])),
    ...[{}, { query: 'a', documents: [] }, { query: 'a', documents: 'b' }, { query: 'a', documents: ['b'], top_n: 0 }].map((body) => (
      [['POST', '/v1/rerank', { body }], 400, 'invalid_request_error', 'invalid_value'])),
    [['GET', '/slots'], 501, 'server_error', 'not_implemented'],
    [['GET', '/health'], 200], [['HEAD', '/health'], 200], [['GET', '/v1/health?x=1'], 200], [['GET', '/models'], 200], [chat({ messages: MESSAGES }, {}), 200],
  ]) {
    const answer = await ask(server.port, method, path, options);
    const where = `${method} ${path} ${JSON.stringify(options ?? {}).slice(0, 100)}: ${answer.status} ${answer.body.slice(0, 200)}`;
    assert.equal(answer.status, status, where);
    if (method !== 'HEAD') assert.deepEqual([answer.error?.type, answer.error?.code], [type, code], where);
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
    if (status === 405) assert.match(answer.headers.allow, /GET|POST/);
    if (answer.error) assert.deepEqual(Object.keys(answer.error).slice(0, 4), ['message', 'type', 'param', 'code']);
  }
});

test('what fails in the engine has its status, streamed or not, and none has begun a stream', async () => {
  for (const [code, status, type, name, headers] of [
    ['use/context', 400, 'invalid_request_error', 'context_length_exceeded', {}], ['use/busy', 429, 'rate_limit_error', 'rate_limit_exceeded', { 'retry-after': '1' }],
    ['model/nonfinite', 500, 'server_error', 'model_failed', { 'x-should-retry': 'false' }], ['mem/load', 500, 'server_error', 'out_of_memory', {}],
    ['engine/trap', 500, 'server_error', 'engine_failed', {}], ['use/empty', 400, 'invalid_request_error', 'invalid_value', {}],
  ]) {
    for (const stream of [false, true]) {
      const model = playedModel(() => ({ promise: Promise.reject(new QuernError(code, 'So.', { detail: { found: 70, limit: 64 } })) }));
      await withOne({ model }, async ({ port }) => {
        const { status: got, error, headers: sent } = await ask(port, 'POST', CHAT, { body: { messages: MESSAGES, stream } });
        assert.deepEqual([got, error.type, error.code, error.message], [status, type, name, 'So.'], code);
        for (const key of ['retry-after', 'x-should-retry']) assert.equal(sent[key], headers[key], `${code} ${key}`);
        if (code === 'use/context') assert.deepEqual([error.n_prompt_tokens, error.n_ctx], [70, 64]);
      });
    }
  }
});

test('while it loads everything but the paths that need no model is 503', async () => {
  const one = await startServer();
  for (const path of ['/health', '/v1/models', '/props']) {
    const { status, headers, error } = await ask(one.port, 'GET', path);
    assert.deepEqual([status, headers['retry-after'], error.message], [503, '5', 'The model is being loaded.'], path);
  }
  assert.equal((await ask(one.port, 'POST', CHAT, { body: { messages: MESSAGES } })).status, 503);
  assert.equal((await ask(one.port, 'GET', '/metrics')).status, 200);
  await one.end();
});

test('what a request quotes is no name of ours, and a fault of ours ends one connection', async () => {
  const names = ['constructor', 'toString', '__proto__', 'hasOwnProperty'].map((name) => `options.${name}`);
  const model = playedModel((push, { options: { logitBias } }) => ({ promise: Promise.reject(badParam('options.logitBias', `has the key '${Object.keys(logitBias)[0]}'`)) }));
  await withOne({ model }, async ({ port }) => {
    for (const name of names) {
      for (const stream of [false, true]) {
        const { status, error } = await ask(port, 'POST', CHAT, { body: `{"messages": [{"role": "user", "content": "x"}], "stream": ${stream}, "logit_bias": {"${name}": 1}}` });
        assert.deepEqual([status, error.param, error.message], [400, 'logit_bias', `logit_bias has the key '${name.slice(8)}'.`]);
      }
    }
    assert.equal((await ask(port, 'GET', '/health')).status, 200);
  });
  let faults = 1;
  const metrics = { count() { if (faults-- > 0) throw new TypeError('played'); }, observe() {} };
  await withOne({ site: { metrics } }, async ({ port }) => {
    for (const status of ['200', '200']) assert.match(await raw(port, request('GET', '/health', { headers: { Connection: 'close' } })), new RegExp(`^(HTTP/1.1 ${status}|$)`));
    assert.equal(faults, -1);
  });
});

test('values of other types are refused as such', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  await withOne({ model: await loadDemo(), site: { onlyName: true } }, async ({ port }) => {
    for (const [path, body, param] of [
      [CHAT, { messages: [{ role: { toString: 1 }, content: 'x' }] }, 'messages[0].role'], [CHAT, { messages: MESSAGES, response_format: { type: { toString: 1 } } }, 'response_format.type'],
      [CHAT, { messages: MESSAGES, model: { toString: 1 } }, 'model'], [CHAT, `{"messages": [{"role": "user", "content": "x"}], "modalities": ${deep}}`, 'modalities'],
      ['/detokenize', { tokens: { length: 1e9 } }, 'tokens'], ['/detokenize', { tokens: Array(2 ** 17 + 1).fill(1) }, 'tokens'], ['/detokenize', { tokens: 'abc' }, 'tokens'],
      ['/apply-template', { messages: [{ role: 'user', content: 'x'.repeat(2 ** 20) }] }, 'messages'],
      ['/apply-template', { messages: [...MESSAGES, { role: 'assistant', content: 'It' }], continue_final_message: true }, 'continue_final_message'],
    ]) {
      const { status, error } = await ask(port, 'POST', path, { body });
      assert.deepEqual([status, error?.param, error?.type], [400, param, 'invalid_request_error'], `${path} ${JSON.stringify(body).slice(0, 60)} ${error?.message}`);
    }
  });
});

// --- 6.4: who may ask ---

test('the Host must be this machine, or one that was named', async () => {
  const { port } = server;
  const named = await startServer({ model: playedModel(prompt), rules: { allowHosts: ['My.Server', '10.0.0.5'] } });
  for (const [host, plain, other] of [
    ['127.0.0.1', 200, 200], [`127.0.0.1:${port}`, 200, 200], ['localhost', 200, 200], ['LOCALHOST:1', 200, 200], ['[::1]:8080', 200, 200], ['127.1.2.3', 200, 200],
    ['my.server', 403, 200], ['MY.SERVER:80', 403, 200], ['10.0.0.5:8080', 403, 200], ['evil.example', 403, 403], ['localhost.evil.example', 403, 403], ['127.0.0.1.evil.example', 403, 403],
    ['evil.example:8080', 403, 403], ['', 403, 403], ['localhost@evil.example', 403, 403], ['0.0.0.0', 403, 403], ['[::]', 403, 403], ['192.168.1.1', 403, 403], ['localhost:99999999', 403, 403],
  ]) {
    assert.equal((await ask(port, 'GET', '/health', { host })).status, plain, host);
    assert.equal((await ask(named.port, 'GET', '/health', { host })).status, other, `${host}, named`);
  }
  const twice = parsed(await raw(port, 'GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n'));
  assert.ok([400, 403].includes(twice.status), `${twice.status}`);
  assert.ok([400, 403].includes(parsed(await raw(port, 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')).status));
  assert.equal(parsed(await raw(port, 'GET /health HTTP/1.0\r\n\r\n')).status, 403);
  await named.end();
});

test('pages of other origins get nothing, those that were named all they need', async () => {
  const page = 'https://page.example';
  await withOne({ rules: { corsOrigins: [page] } }, async ({ port }) => {
    for (const origin of ['https://evil.example', 'null', 'https://page.example.evil.example', 'http://page.example', `http://127.0.0.1:${port}`, '']) {
      for (const method of ['GET', 'OPTIONS']) {
        const { status, headers } = await ask(port, method, method === 'GET' ? '/health' : CHAT, { headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' } });
        assert.equal(status, 403, `${method} ${origin}`);
        assert.deepEqual(Object.keys(headers).filter((name) => name.startsWith('access-control')), []);
      }
    }
    const asked = { Origin: page, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,content-type,x-stainless-os' };
    const before_ = await ask(port, 'OPTIONS', CHAT, { headers: asked });
    assert.equal(before_.status, 204);
    assert.deepEqual(['origin', 'headers', 'methods'].map((name) => before_.headers[`access-control-allow-${name}`]), [page, 'authorization,content-type,x-stainless-os', 'GET, POST, DELETE']);
    assert.equal(before_.headers['access-control-allow-credentials'], undefined);
    const { status, headers } = await ask(port, 'POST', CHAT, { body: { messages: MESSAGES }, headers: { Origin: page } });
    assert.deepEqual([status, headers['access-control-allow-origin'], headers.vary], [200, page, 'Origin']);
    const streamed = await ask(port, 'POST', CHAT, { body: { messages: MESSAGES, stream: true }, headers: { Origin: page } });
    assert.deepEqual([streamed.status, streamed.headers['access-control-allow-origin']], [200, page]);
  });
});

test('a key opens everything, and without one only /health answers', async () => {
  await withOne({ rules: { keys: ['sk-a', 'sk-b'] } }, async ({ port }) => {
    const status = async (path, headers) => (await ask(port, 'GET', path, { headers })).status;
    for (const headers of [{}, { Authorization: 'Bearer sk-' }, { Authorization: 'Bearer sk-aa' }, { Authorization: 'sk-a' }, { Authorization: 'Basic sk-a' }, { 'X-Api-Key': 'x' }, { Authorization: 'Bearer ' }]) {
      for (const path of ['/v1/models', '/metrics', '/props', '/slots', '/nowhere', '/v1/models/x']) assert.equal(await status(path, headers), 401, `${path} ${JSON.stringify(headers)}`);
      assert.equal(await status('/health', headers), 200);
    }
    for (const headers of [{ Authorization: 'Bearer sk-a' }, { authorization: 'bearer sk-b' }, { 'X-Api-Key': 'sk-b' }]) assert.equal(await status('/v1/models', headers), 200);
    assert.equal((await ask(port, 'GET', '/v1/models')).headers['www-authenticate'], 'Bearer');
  });
});

// --- 6.4: sizes and times ---

test('a body that is too long is refused, told or not, and the answer arrives', async () => {
  const limits = { body: 100_000 };
  await withOne({ limits }, async ({ port }) => {
    const long = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(1_000_000) }] });
    assert.equal((await ask(port, 'POST', CHAT, { body: long })).error?.code, 'too_large');
    const head = request('POST', CHAT, { headers: { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' } });
    const chunks = Array.from({ length: 300 }, () => `400\r\n${'x'.repeat(1024)}\r\n`);
    assert.equal(parsed(await raw(port, [head, ...chunks, '0\r\n\r\n'])).status, 413);
    const told = parsed(await raw(port, request('POST', CHAT, { headers: { 'Content-Type': 'application/json', 'Content-Length': 2 ** 40 } }), { enough: (text) => text.includes('"code"') }));
    assert.equal(told.status, 413);
    assert.equal((await ask(port, 'POST', CHAT, { body: { messages: [{ role: 'user', content: 'x'.repeat(90_000) }] } })).status, 200);
  });
  const { LIMITS } = await import('../../../js/cli/serve-http.js');
  assert.deepEqual([LIMITS.body, LIMITS.header, LIMITS.unsent, LIMITS.connections, LIMITS.headersMs, LIMITS.requestMs], [4_194_304, 16_384, 262_144, 1024, 10_000, 30_000]);
});

test('headers that are too long, and what is no HTTP', async () => {
  const answer = parsed(await raw(server.port, request('GET', '/health', { headers: { Long: 'x'.repeat(20_000) } })));
  assert.deepEqual([answer.status, answer.error.code], [431, 'headers_too_large']);
  for (const bytes of ['nonsense\r\n\r\n', '\0\0\0\0\r\n\r\n', 'GET /health HTTP/9.9\r\n\r\n', request('POST', CHAT, { headers: { 'Content-Length': 'many' } }),
    request('POST', CHAT, { headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': '5' } })]) {
    assert.equal(parsed(await raw(server.port, bytes)).status, 400, JSON.stringify(bytes.slice(0, 40)));
  }
  assert.equal((await ask(server.port, 'GET', '/health')).status, 200);
});

test('who sends slowly is let go: headers, and bodies', async () => {
  await withOne({ limits: { headersMs: 300, requestMs: 700, checkMs: 50 } }, async ({ port }) => {
    const started = performance.now();
    const [head, body] = await Promise.all([
      raw(port, 'GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
      raw(port, [request('POST', CHAT, { headers: { 'Content-Type': 'application/json', 'Content-Length': 1000 } }), '{']),
    ]);
    assert.deepEqual([parsed(head).status, parsed(body).status], [408, 408]);
    assert.ok(performance.now() - started < 5000);
    assert.equal((await ask(port, 'GET', '/health')).status, 200);
  });
});

test('connections beyond the limit are not taken, and there is room again when others go', async () => {
  await withOne({ limits: { connections: 3 } }, async ({ port }) => {
    const held = await Promise.all([1, 2, 3].map(() => new Promise((resolve) => { const socket = connect(port, '127.0.0.1', () => resolve(socket)); })));
    await until(() => held.every((socket) => socket.readyState === 'open'));
    assert.equal(await raw(port, request('GET', '/health')), '');
    held[0].destroy();
    let status;
    for (let i = 0; i < 100 && status !== 200; i++) {
      await new Promise((done) => { setTimeout(done, 20); });
      status = (await ask(port, 'GET', '/health')).status;
    }
    assert.equal(status, 200);
    held.forEach((socket) => socket.destroy());
  });
});

test('who does not read what he asked for is let go, others go on', async () => {
  await withOne({ model: playedModel((push, call) => endless(push, call, call.input[0].content === 'fast' ? 'x'.repeat(100_000) : 'on ')), limits: { unsent: 200_000 } }, async ({ port, served }) => {
    const calm = connect(port, '127.0.0.1');
    calm.resume();
    calm.write(request('POST', CHAT, { body: { messages: MESSAGES, stream: true } }));
    await until(() => served.jobs.length === 1);
    const deaf = connect(port, '127.0.0.1');
    deaf.pause();
    deaf.on('error', () => {});
    deaf.write(request('POST', CHAT, { body: { messages: [{ role: 'user', content: 'fast' }], stream: true } }));
    await until(() => served.jobs.length === 2);
    await until(() => served.jobs.length === 1, 20_000);
    assert.equal(calm.destroyed, false);
    calm.destroy();
    deaf.destroy();
    await until(() => served.jobs.length === 0);
  });
});

test('a whole answer that is not read is let go in its time; one that is waited for, and a connection between two, are not', async () => {
  let isMade = false;
  const tokenize = async (text) => {
    isMade = text === 'much';
    return Array(isMade ? 8_000_000 : 1).fill(100);
  };
  const model = playedModel((push, { options }) => {
    options.onPrefill({ done: 1, total: 1, cached: 0 });
    return { promise: new Promise((resolve) => { setTimeout(resolve, 900, result('late')); }) };
  }, { tokenize });
  await withOne({ model, limits: { requestMs: 300, headersMs: 300, slowMs: 300, checkMs: 50 } }, async ({ port, metrics }) => {
    const deaf = connect(port, '127.0.0.1');
    deaf.pause();
    deaf.on('error', () => {});
    deaf.write(request('POST', '/tokenize', { body: { content: 'much' } }));
    await until(() => isMade);
    await new Promise((done) => { setTimeout(done, 100); });      // it takes the server a while to write all of it
    const patient = raw(port, [request('POST', CHAT, { body: { messages: MESSAGES } }) + request('GET', '/health', { headers: { Connection: 'close' } })]);
    assert.match(await patient, /"late".*"status":"ok"/s);
    await until(() => /^quern_clients_let_go_total\{why="slow"\} 1$/m.test(metrics.text([], {})));
    let size = 0;
    const closed = new Promise((resolve) => { deaf.on('close', resolve); });
    deaf.on('data', (chunk) => { size += chunk.length; });
    deaf.resume();
    await closed;
    assert.ok(size > 0 && size < 30_000_000, `${size} bytes`);
  });
});

test('requests under way are counted, also those of whoever has gone', async () => {
  let letGo;
  const gate = new Promise((resolve) => { letGo = resolve; });
  let begun = 0;
  const tokenize = async (text) => { if (text === 'slow') begun++; if (text === 'slow') await gate; return [1]; };
  await withOne({ model: playedModel(endless, { tokenize }), limits: { pipelined: 4, underWay: 4 } }, async ({ port, served }) => {
    const send = (text) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(text);
      return socket;
    };
    const one = request('POST', CHAT, { body: { messages: MESSAGES, stream: true } });
    const most = send(one.repeat(4));
    await until(() => served.jobs.length === 4);
    most.write(one);
    await until(() => served.jobs.length === 0);      // one more than may be ends the connection
    const slow = request('POST', '/tokenize', { body: { content: 'slow' } });
    const gone = [send(slow.repeat(2)), send(slow.repeat(2))];
    await until(() => begun === 4);
    const quick = () => ask(port, 'POST', '/tokenize', { body: { content: 'quick' } });
    const becomes = async (wanted) => { while ((await quick()).status !== wanted) await new Promise((done) => { setTimeout(done, 10); }); };
    await becomes(429);
    for (const socket of gone) socket.destroy();
    const { status, error, headers } = await quick();
    assert.deepEqual([status, error.code, headers['retry-after']], [429, 'rate_limit_exceeded', '1']);
    assert.equal((await ask(port, 'GET', '/health')).status, 200);
    letGo();
    await becomes(200);
  });
});

// --- connections that go ---

/** A model whose replies stay in a phase: waiting, reading or writing. */
const staying = (push, { input, options }) => {
  const phase = input[0].content;
  if (phase === 'writing') return endless(push, { options });
  if (phase === 'reading') options.onPrefill({ done: 1, total: 3, cached: 0 });
  let stop;
  return { promise: new Promise((resolve) => { stop = () => resolve(result('', { finishReason: 'aborted' })); }), stop: () => stop() };
};

test('a connection that goes ends its own replies, whatever they are doing', async () => {
  await withOne({ model: playedModel(staying), limits: { acceptMs: 20 } }, async ({ port, served, base }) => {
    const open = (phase, stream, n = 1) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      socket.write(request('POST', CHAT, { body: { messages: [{ role: 'user', content: phase }], stream, n } }));
      return socket;
    };
    const kept = open('writing', true);
    await until(() => served.jobs.length === 1);
    for (const phase of ['waiting', 'reading', 'writing']) {
      for (const stream of [false, true]) {
        for (const go of ['destroy', 'resetAndDestroy', 'end']) {
          const socket = open(phase, stream, 3);
          await until(() => served.jobs.filter((job) => job.phase === phase).length >= (phase === 'writing' ? 4 : 3));
          socket[go]();
          await until(() => served.jobs.length === 1, 5000);
        }
      }
    }
    const metrics = await (await fetch(`${base}/metrics`)).text();
    for (const phase of ['waiting', 'reading', 'writing']) assert.match(metrics, new RegExp(`quern_aborted_total\\{phase="${phase}"\\} 18`));
    assert.equal(kept.destroyed, false);
    kept.destroy();
    await until(() => served.jobs.length === 0);
  });
});

test('requests in one piece are answered in their order; when the connection goes all of them end', async () => {
  const chats = ['first', 'second', 'third'].map((content) => request('POST', CHAT, { body: { messages: [{ role: 'user', content }] } }));
  const slow = { first: 60, second: 5, third: 30 };
  const model = playedModel((push, { input, options }) => {
    if (!slow[input[0].content]) return endless(push, { options });
    options.onPrefill({ done: 1, total: 1, cached: 0 });
    return { promise: new Promise((resolve) => { setTimeout(resolve, slow[input[0].content], result(input[0].content)); }) };
  });
  await withOne({ model }, async ({ port, served }) => {
    const text = await raw(port, [chats.join('') + request('GET', '/health', { headers: { Connection: 'close' } })]);
    assert.deepEqual([...text.matchAll(/"content":"(\w+)"|"status":"(ok)"/g)].map(([, content, ok]) => content ?? ok), ['first', 'second', 'third', 'ok']);
    const endlessly = request('POST', CHAT, { body: { messages: MESSAGES, stream: true } });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(endlessly.repeat(20));
    await until(() => served.jobs.length === 20);
    socket.destroy();
    await until(() => served.jobs.length === 0);
    const deaf = connect(port, '127.0.0.1');
    deaf.on('error', () => {});
    deaf.write(endlessly.repeat(3));
    await until(() => served.jobs.length === 3);
    deaf.resume();
    deaf.end();
    await until(() => served.jobs.length === 0);
  });
});

test('a stream whose reply waits has its headers soon, and comments meanwhile', async () => {
  let begin;
  const model = playedModel((push, { options }) => ({ promise: new Promise((resolve) => {
    begin = () => { options.onPrefill({ done: 1, total: 1, cached: 0 }); push({ type: 'text', text: 'late' }); resolve(result('late')); };
  }) }));
  await withOne({ model, limits: { acceptMs: 30, pingMs: 20 } }, async ({ port }) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(request('POST', CHAT, { body: { messages: MESSAGES, stream: true }, headers: { Connection: 'close' } }));
    let text = '';
    for await (const data of socket) {
      text += data;
      if (begin && text.split(': ping').length > 3) {
        begin();
        begin = null;
      }
    }
    const { status, headers, body } = parsed(text);
    assert.deepEqual([status, headers['content-type']], [200, 'text/event-stream; charset=utf-8']);
    assert.match(body, /: waiting\n\n/);
    assert.ok(body.match(/^: ping$/gm).length > 2);
    assert.ok(body.indexOf(': waiting') < body.indexOf('data: '));
    assert.ok(body.includes('"content":"late"') && body.includes('data: [DONE]'));
  });
});

test('a comment comes every 15 seconds', async (t) => {
  assert.equal(LIMITS.pingMs, 15_000);
  const begun = [];
  const { setInterval: real } = globalThis;
  t.mock.method(globalThis, 'setInterval', (...args) => {
    if (args.length > 2) begun.push(args.slice(1));
    return real(...args);
  });
  await withOne({ model: playedModel(() => ({ promise: Promise.resolve(result('at once')) })) }, async ({ port }) => {
    await ask(port, 'POST', CHAT, { body: { messages: MESSAGES, stream: true } });
  });
  assert.deepEqual(begun, [[15_000, ': ping\n\n']]);
});

// --- the end ---

test('at the end who waits comes again, who is written to has his time, and what is left ends as it is', async () => {
  const one = await startServer({ model: playedModel(staying), limits: { acceptMs: 20 } });
  const begin = (phase, stream) => ask(one.port, 'POST', CHAT, { body: { messages: [{ role: 'user', content: phase }], stream } });
  const writing = [begin('writing', false), begin('writing', true)];
  const waiting = [begin('waiting', false), begin('waiting', true)];
  const idle = connect(one.port, '127.0.0.1');
  const kept = connect(one.port, '127.0.0.1');
  const answers = new Promise((resolve) => { let text = ''; kept.on('data', (chunk) => { text += chunk; }).on('close', () => resolve(text)); });
  kept.write(request('POST', CHAT, { body: { messages: [{ role: 'user', content: 'writing' }] } }));
  await until(() => one.served.jobs.length === 5 && one.served.jobs.filter(({ phase }) => phase === 'writing').length === 3);
  await new Promise((done) => { setTimeout(done, 60); });     // the one that waits as a stream has its headers
  const started = performance.now();
  one.http.drain();
  const drained = one.served.drain(2500);     // longer than what follows takes
  const [refused, told] = await Promise.all(waiting);
  assert.deepEqual([refused.status, refused.headers['retry-after'], refused.error.message], [503, '5', 'The server is about to end.']);
  assert.deepEqual([told.status, told.body.includes('[DONE]')], [200, false]);
  assert.match(told.body, /data: \{"error":\{"message":"The server is about to end\."/);
  assert.equal(one.served.jobs.length, 3, 'those that are written to go on');
  assert.equal(await raw(one.port, request('GET', '/health')), '', 'nobody is let in');
  kept.write(request('GET', '/health'));
  await drained;
  assert.ok(performance.now() - started >= 2490);
  await one.http.close(1000);
  assert.match(await answers, /^HTTP\/1\.1 200 .*HTTP\/1\.1 503 .*The server is about to end\./s, 'who is connected is told');
  const [whole, streamed] = await Promise.all(writing);
  const { choices: [choice] } = JSON.parse(whole.body);
  assert.ok(choice.message.content.startsWith('on on on') && choice.finish_reason === 'length');
  const events = dataOf(streamed.body);
  assert.deepEqual([events.at(-1), events.at(-2).choices[0].finish_reason], ['[DONE]', 'length']);
  idle.destroy();
});

// --- many ---

test('requests that are given up at any moment leave nothing running', { timeout: 3_600_000 }, async (t) => {
  const count = length(300, 10_000);
  const model = await loadDemo({ contextSize: 512 });
  const one = await startServer({ model });
  const random = seeded(18);
  const body = (i) => ({ messages: [{ role: 'user', content: `Tell me story ${i % 7} about an owl. `.repeat(1 + i % 5) }], stream: i % 2 === 0, n: 1 + (i % 3), seed: i, max_tokens: 100 });
  const question = { messages: [{ role: 'user', content: 'What is the capital of Kenya?' }], temperature: 0 };
  const first = JSON.parse((await ask(one.port, 'POST', CHAT, { body: question })).body).choices[0].message.content;
  const used = model.info.memory.used;
  const give = async (i) => {
    const socket = connect(one.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    const text = request('POST', CHAT, { body: body(i) });
    socket.write(random() < 0.1 ? text.slice(0, Math.floor(random() * text.length)) : text);
    await new Promise((done) => { setTimeout(done, random() * 40); });
    socket[random() < 0.5 ? 'destroy' : 'resetAndDestroy']();
  };
  for (let i = 0; i < count; i += 4) await Promise.all([0, 1, 2, 3].map((k) => give(i + k)));
  await one.idle(30_000);
  const answer = JSON.parse((await ask(one.port, 'POST', CHAT, { body: question })).body);
  assert.equal(answer.choices[0].message.content, first);
  assert.equal(model.info.memory.used, used);
  const metrics = await (await fetch(`${one.base}/metrics`)).text();
  t.diagnostic(metrics.match(/^quern_(?:aborted_total.*|requests_running|requests_waiting) .*$/gm).join(', '));
  assert.match(metrics, /^quern_requests_running 0$/m);
  assert.match(metrics, /^quern_pages\{state="used"\} 0$/m);
  await one.end();
});

// SPDX-License-Identifier: MIT
// `npm run bench -- --only serve`: `quern serve` beside llama.cpp's llama-server (tools/llama.sh), in turn and never both alive, on the same file
// with the same threads. Clients in a closed loop each send a prompt of token ids, read its stream to the end and send the next one; every token
// is " the", so that each is a piece of text for both. Told are requests and tokens per second of all clients together, and of each request the
// time to its first token and the gaps between its tokens. The report goes to docs/benchmarks/serve.md and serve.json.
//
//   node tests/bench/bench.mjs --only serve [--type q8_0] [--threads 2] [--clients 1,4,8] [--requests 3] [--repeat 3] [--quick] [--out DIR]
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { random } from '../fixtures/random.mjs';
import { PROJECT, TOKEN, bigModel } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { serveReport, summary } from './serve-report.mjs';

/** Positions that all clients together may have: as much for both, so that neither has to let go. */
const CONTEXT = 8192;

/** What is asked: `prompt` ids, the first `shared` of them the same for all, and `written` tokens. */
export const SCENES = {
  chat: { prompt: 128, shared: 0, written: 64, words: '128 ids in, 64 tokens out' },
  document: { prompt: 576, shared: 512, written: 64, words: '512 ids that all share and 64 of one\'s own in, 64 tokens out' },
};

const READY_MS = 120_000;

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

/** How each is started. @returns {{command: string, args: string[], cwd?: string}} */
const SERVERS = {
  quern: ({ path, threads, port, parallel }) => ({
    command: process.execPath,
    args: [join(PROJECT, 'dist/cli.js'), 'serve', path, '--port', String(port), '--threads', String(threads), '--context', String(CONTEXT), '--parallel', String(parallel)],
  }),
  llama: ({ path, threads, port, parallel }) => nativeCommand('llama-server',
    ['-m', path, '-t', String(threads), '-c', String(CONTEXT), '-np', String(parallel), '--port', String(port), '--host', '127.0.0.1', '--no-webui', '-fa', 'on']),
};

/** Starts a server and waits until it answers. @returns {Promise<{url: string, close: () => Promise<void>}>} */
async function start(name, how) {
  const port = await freePort();
  const { command, args, cwd } = SERVERS[name]({ ...how, port });
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (data) => { log = (log + data).slice(-10_000); });
  process.once('exit', () => child.kill('SIGKILL'));       // whoever ends the benchmark ends its server
  const ended = new Promise((resolve) => { child.once('close', resolve); });
  const url = `http://127.0.0.1:${port}`;
  for (const begun = performance.now(); ; await sleep(100)) {
    if (child.exitCode !== null || performance.now() - begun > READY_MS) {
      child.kill('SIGKILL');
      throw new Error(`${name} did not start: ${log.trim().split('\n').at(-1)}`);
    }
    if (await fetch(`${url}/health`).then(({ ok }) => ok, () => false)) break;
  }
  return { url, close: () => { child.kill('SIGTERM'); setTimeout(() => child.kill('SIGKILL'), 10_000).unref(); return ended; } };
}

/** Ids of ordinary tokens, the first `shared` of them by another generator. */
function promptIds({ prompt, shared }, seed) {
  const [common, own] = [random(1), random(seed)];
  return Array.from({ length: prompt }, (_, i) => 1000 + Math.floor(50_000 * (i < shared ? common : own)()));
}

/** One request, read to its end. @returns {Promise<{first: number, gaps: number[], tokens: number}>} times in ms */
function ask(url, agent, scene, seed) {
  const body = JSON.stringify({
    model: 'any', prompt: promptIds(scene, seed), max_tokens: scene.written, temperature: 0, logit_bias: { [TOKEN]: 100 }, ignore_eos: true, stream: true,
    stream_options: { include_usage: true },
  });
  return new Promise((resolve, reject) => {
    const sent = performance.now();
    const times = [];
    let rest = '';
    let tokens = 0;
    const options = { method: 'POST', agent, headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) } };
    const call = request(`${url}/v1/completions`, options, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`));
      response.setEncoding('utf8');
      response.on('data', (piece) => {
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        for (const line of lines.filter((one) => /^data: \{/.test(one))) {
          const { choices, usage } = JSON.parse(line.slice(6));
          if (choices?.[0]?.text) times.push(performance.now());
          tokens = usage?.completion_tokens ?? tokens;
        }
      });
      response.on('error', reject);
      return response.on('end', () => resolve({ first: times[0] - sent, gaps: times.slice(1).map((time, i) => time - times[i]), tokens }));
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** So many clients, each with so many requests after each other. */
async function loop(url, scene, { clients, requests, seed }) {
  const agent = new Agent({ keepAlive: true });
  const begun = performance.now();
  const answers = (await Promise.all(Array.from({ length: clients }, async (_, client) => {
    const own = [];
    for (let i = 0; i < requests; i++) own.push(await ask(url, agent, scene, 1000 * seed + 100 * client + i + 2));
    return own;
  }))).flat();
  const seconds = (performance.now() - begun) / 1000;
  agent.destroy();
  const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0);
  return { seconds, requests: answers.length, tokens, first: answers.map(({ first }) => first), gaps: answers.flatMap(({ gaps }) => gaps) };
}

function options() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: {
    only: text, type: text, threads: text, clients: text, requests: text, repeat: text, out: text, quick: { type: 'boolean', default: false },
  } });
  const { quick } = values;
  return {
    type: values.type ?? 'q8_0', threads: Number(values.threads ?? 2), clients: (values.clients ?? '1,4,8').split(',').map(Number),
    requests: Number(values.requests ?? (quick ? 1 : 3)), repeat: Number(values.repeat ?? (quick ? 1 : 3)), out: values.out ?? (quick ? 'build/bench' : 'docs/benchmarks'),
  };
}

/** A server's figures of one repetition, for every scene and number of clients. */
async function measure(name, { path, threads, clients, requests }, seed) {
  const parallel = Math.max(...clients);
  const server = await start(name, { path, threads, parallel });
  const runs = [];
  try {
    await loop(server.url, { prompt: 32, shared: 0, written: 8 }, { clients: parallel, requests: 1, seed: 999 });     // whatever is slow the first time
    for (const [scene, what] of Object.entries(SCENES)) {
      for (const n of clients) {
        const figures = await loop(server.url, what, { clients: n, requests, seed: seed + n });
        runs.push({ server: name, scene, clients: n, machineLoad: loadAverage(), ...figures });
        console.error(`${seed / 100} ${name} ${scene} ${n}: ${(figures.tokens / figures.seconds).toFixed(1)} tokens/s`);
      }
    }
  } finally {
    await server.close();
  }
  return runs;
}

export async function measureServers() {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const chosen = options();
  const names = hasNative() ? ['llama', 'quern'] : ['quern'];
  const path = join(PROJECT, bigModel(chosen.type));
  const runs = [];
  for (let repetition = 1; repetition <= chosen.repeat; repetition++) {
    for (const name of names) runs.push(...(await measure(name, { ...chosen, path }, 100 * repetition)).map((run) => ({ repetition, ...run })));
  }
  const report = { machine: describeMachine(''), llama: names.includes('llama') ? packagedVersion() : null, settings: chosen, summary: summary(runs) };
  mkdirSync(join(PROJECT, chosen.out), { recursive: true });
  writeFileSync(join(PROJECT, chosen.out, 'serve.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(PROJECT, chosen.out, 'serve.md'), serveReport(report, SCENES));
  console.log(serveReport(report, SCENES));
}

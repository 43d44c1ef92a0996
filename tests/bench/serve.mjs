// SPDX-License-Identifier: MIT
// `npm run bench -- --only serve`: `quern serve` beside llama.cpp's llama-server (tools/llama.sh), in turn and never both alive, on the same file
// with the same threads: clients in a closed loop, and newcomers while others write (serve-clients.mjs). What is measured is written to
// build/bench/serve-runs.json at once; `--minutes` ends after some, and `--resume` goes on. The report goes to docs/benchmarks/serve.md and serve.json.
//
//   node tests/bench/bench.mjs --only serve [--type q8_0] [--threads 2] [--scenes chat,document,newcomer] [--clients 1,4,8] [--requests 3] [--repeat 3]
//     [--minutes 5] [--resume] [--quick] [--out DIR]
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT, bigModel } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { loop, newcomers } from './serve-clients.mjs';
import { serveReport, summary } from './serve-report.mjs';

const RUNS = join(PROJECT, 'build/bench/serve-runs.json');

/** Positions that all clients together may have: as much for both, so that neither has to let go. */
const CONTEXT = 8192;

/** What is asked: `prompt` ids, the first `shared` of them the same for all, and `written` tokens. */
const SCENES = {
  chat: { prompt: 128, shared: 0, written: 64, words: '128 ids in, 64 tokens out' },
  document: { prompt: 576, shared: 512, written: 64, words: '512 shared ids and 64 own ids in, 64 tokens out' },
};

/** Newcomers with 128 ids while four write: serve-clients.mjs. */
const NEWCOMER = 'newcomer';
const MOST_NEWCOMERS = 5;

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
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);       // whoever ends the benchmark ends its server
  const ended = new Promise((resolve) => { child.once('close', () => resolve(process.off('exit', kill))); });
  const url = `http://127.0.0.1:${port}`;
  for (const begun = performance.now(); ; await sleep(100)) {
    if (child.exitCode !== null || performance.now() - begun > READY_MS) {
      kill();
      throw new Error(`${name} did not start: ${log.trim().split('\n').at(-1)}`);
    }
    if (await fetch(`${url}/health`).then(({ ok }) => ok, () => false)) break;
  }
  return { url, close: () => { child.kill('SIGTERM'); setTimeout(kill, 10_000).unref(); return ended; } };
}

function options() {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const { values } = parseArgs({ options: {
    only: text, type: text, threads: text, scenes: text, clients: text, requests: text, repeat: text, minutes: text, out: text, resume: flag, quick: flag,
  } });
  const { type = 'q8_0', threads = 2, minutes = Infinity, quick, resume } = values;
  return {
    type, threads: Number(threads), minutes: Number(minutes), resume,
    scenes: values.scenes?.split(',') ?? [...Object.keys(SCENES), NEWCOMER], clients: (values.clients ?? '1,4,8').split(',').map(Number),
    requests: Number(values.requests ?? (quick ? 1 : 3)), repeat: Number(values.repeat ?? (quick ? 1 : 3)), out: values.out ?? (quick ? 'build/bench' : 'docs/benchmarks'),
  };
}

/** What is measured, each by a server of its own that has just started: the two in turn, so that what slows the machine slows both. */
function piecesOf({ scenes, clients, repeat }, servers) {
  const pieces = [];
  for (let repetition = 1; repetition <= repeat; repetition++) {
    for (const scene of scenes) {
      for (const n of scene === NEWCOMER ? [1] : clients) pieces.push(...servers.map((server) => ({ repetition, scene, clients: n, server })));
    }
  }
  return pieces;
}

async function measure({ server: name, scene, clients, repetition }, { path, threads, requests, clients: all }) {
  const parallel = Math.max(...all, MOST_NEWCOMERS);
  const server = await start(name, { path, threads, parallel });
  const seed = 100 * repetition + clients;
  try {
    await loop(server.url, { prompt: 32, written: 8 }, { clients: parallel, requests: 1, seed: 999 });     // whatever is slow the first time
    const figures = scene === NEWCOMER ? await newcomers(server.url, { seed }) : await loop(server.url, SCENES[scene], { clients, requests, seed });
    return { machineLoad: loadAverage(), ...figures };
  } finally {
    await server.close();
  }
}

/** What an earlier call has measured with the same settings. */
function earlier({ resume, only: _, minutes: __, ...settings }) {
  const machine = describeMachine('');
  const none = { machine, settings, runs: [] };
  if (!resume || !existsSync(RUNS)) return none;
  const saved = JSON.parse(readFileSync(RUNS, 'utf8'));
  if (saved.machine.cpu !== machine.cpu || JSON.stringify(saved.settings) !== JSON.stringify(settings)) throw new Error(`--resume: ${RUNS} has other settings`);
  return saved;
}

/** Those of the pieces that are not there yet, until the time is over. @returns {Promise<boolean>} whether all are there */
async function measurePieces(pieces, state, chosen) {
  const begun = performance.now();
  const path = join(PROJECT, bigModel(chosen.type));
  const keyOf = ({ repetition, scene, clients, server }) => [repetition, scene, clients, server].join(' ');
  for (const piece of pieces) {
    if (state.runs.some((run) => keyOf(run) === keyOf(piece))) continue;
    if (performance.now() - begun > 60_000 * chosen.minutes) return false;
    state.runs.push({ ...piece, ...await measure(piece, { ...chosen, path }) });
    writeFileSync(RUNS, JSON.stringify(state));
    console.error(`${keyOf(piece)} is measured`);
  }
  return true;
}

export async function measureServers() {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const chosen = options();
  const servers = hasNative() ? ['llama', 'quern'] : ['quern'];
  mkdirSync(dirname(RUNS), { recursive: true });
  const state = earlier(chosen);
  if (!await measurePieces(piecesOf(chosen, servers), state, chosen)) return console.error('serve: the time is over; --resume goes on');
  const { machine, settings, runs } = state;
  const report = { machine, llama: servers.includes('llama') ? packagedVersion() : null, settings, ...summary(runs) };
  const folder = join(PROJECT, chosen.out);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'serve.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(folder, 'serve.md'), serveReport(report, SCENES));
  return console.log(serveReport(report, SCENES));
}

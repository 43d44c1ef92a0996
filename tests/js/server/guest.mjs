// SPDX-License-Identifier: MIT
// One hostile client of a server, as a process of its own. For a given time, some hundred connections each send one
// request after another, of some kinds of hostile.mjs. The process has low priority, and its line carries a limited
// number of bytes per second, because more than a server can read does not concern shares.
//
// It sends {ready: true} when it is prepared. It receives {begin: {port, key, kinds, seed}} and {end: true}, and sends
// {ended: counts of answers by kind and status}.

import { connect } from 'node:net';
import { setPriority } from 'node:os';
import { AT_ONCE, KINDS, eachHostile } from '../../fixtures/hostile.mjs';
import { random as seeded } from '../../fixtures/random.mjs';

const BYTES_A_SECOND = 40e6;
const ALL_AT_ONCE = 150;
const REFUSED_MS = 200;

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

let isOver = true;
let counts = {};
const sockets = new Set();

/** Resolves when the next bytes may be sent. */
let free = 0;
async function line(bytes) {
  const now = performance.now();
  free = Math.max(free, now) + (bytes / BYTES_A_SECOND) * 1000;
  await sleep(free - now);
}

/** Sends a little now and then, until it is cut off. */
function readSlowly(socket) {
  socket.pause();
  const timer = setInterval(() => socket.read(3072), 5000);
  socket.on('close', () => clearInterval(timer));
}

function drip(socket, body) {
  let at = 0;
  const timer = setInterval(() => { socket.write(body.subarray(at, ++at)); }, 300);
  socket.on('close', () => clearInterval(timer));
}

const SENT = {
  slow: (socket, body) => { socket.write(body); readSlowly(socket); },
  half: (socket, body) => { socket.write(body.subarray(0, 5000)); },
  drip,
  idle: () => {},
  abort: (socket, body, random) => {
    socket.write(body);
    setTimeout(() => socket[random() < 0.5 ? 'destroy' : 'resetAndDestroy'](), 600 * random());
  },
};

/** @returns {Promise<string>} status of the answer; '': no answer came */
function send({ method, path, body, how }, { port, key }, random) {
  return new Promise((resolve) => {
    let status = '';
    const socket = connect(port, '127.0.0.1');
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => { status ||= /^HTTP\/1.1 (\d+)/.exec(data.toString('latin1', 0, 20))?.[1] ?? '?'; });
    socket.on('close', () => { sockets.delete(socket); resolve(status); });
    if (how === 'idle') return;
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: ${key}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`);
    if (how) SENT[how](socket, body, random);
    else socket.write(body);
  });
}

async function connection(kinds, to, random) {
  while (!isOver) {
    const kind = kinds[Math.floor(random() * kinds.length)];
    const asked = KINDS[kind](random);
    if (!['half', 'drip', 'idle'].includes(asked.how)) await line(asked.body.length);
    if (isOver) return;
    const status = await send(asked, to, random);
    const name = `${asked.which ?? kind}${asked.how ? ` (${asked.how})` : ''} ${status}`;
    counts[name] = (counts[name] ?? 0) + 1;
    if (status !== '200') await sleep(REFUSED_MS);
  }
}

let all = Promise.resolve();

async function begin({ kinds, seed, ...to }) {
  isOver = false;
  counts = {};
  const n = kinds.length === 1 ? AT_ONCE[kinds[0]] : ALL_AT_ONCE;
  all = Promise.all(Array.from({ length: n }, (_, i) => connection(kinds, to, seeded(seed * 1000 + i))));
}

async function end() {
  isOver = true;
  free = 0;
  for (const socket of sockets) socket.destroy();
  await all;
  process.send({ ended: counts });
}

for (const request of eachHostile()) request.body.fill(0);
setPriority(10);
process.send({ ready: true });
process.on('message', ({ begin: how }) => (how ? begin(how) : end()));
process.on('disconnect', () => process.exit());

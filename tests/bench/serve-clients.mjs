// SPDX-License-Identifier: MIT
// Clients of a server of the OpenAI API that measure: each sends a prompt of token ids, on a connection of its own (llama-server hangs up after a
// stream), and reads its stream to the end. Every token is " the", so that each is a piece of text for every server.
import { Agent, request } from 'node:http';
import { random } from '../fixtures/random.mjs';
import { TOKEN } from './fixtures.mjs';
import { quantile } from './serve-report.mjs';

/** Who writes while newcomers come, for how long, and what a newcomer brings. */
const COMPANY = { writers: 4, prompt: 128, written: 700, newcomer: { prompt: 128, written: 4 }, newcomers: 4, settled: 16 };

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Ids of ordinary tokens, the first `shared` of them by another generator. */
function promptIds({ prompt, shared = 0 }, seed) {
  const [common, own] = [random(1), random(seed)];
  return Array.from({ length: prompt }, (_, i) => 1000 + Math.floor(50_000 * (i < shared ? common : own)()));
}

/**
 * One request, read to its end.
 * @param {{prompt: number, shared?: number, written: number}} scene
 * @param {{signal?: AbortSignal, times?: number[]}} [more] times: of each piece, as it comes
 * @returns {Promise<{sent: number, first: number, times: number[], tokens: number}>} in ms; first: since it was sent
 */
function ask(url, agent, scene, seed, { signal, times = [] } = {}) {
  const body = JSON.stringify({
    model: 'any', prompt: promptIds(scene, seed), max_tokens: scene.written, temperature: 0, logit_bias: { [TOKEN]: 100 }, ignore_eos: true, stream: true,
    stream_options: { include_usage: true },
  });
  return new Promise((resolve, reject) => {
    const sent = performance.now();
    let rest = '';
    let tokens = 0;
    const options = { method: 'POST', agent, signal, headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) } };
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
      return response.on('end', () => resolve({ sent, first: times[0] - sent, times, tokens }));
    });
    call.on('error', reject);
    call.end(body);
  });
}

const gapsOf = (times) => times.slice(1).map((time, i) => time - times[i]);

/** A closed loop: so many clients, each with so many requests after each other. */
export async function loop(url, scene, { clients, requests, seed }) {
  const agent = new Agent();
  const begun = performance.now();
  const answers = (await Promise.all(Array.from({ length: clients }, async (_, client) => {
    const own = [];
    for (let i = 0; i < requests; i++) own.push(await ask(url, agent, scene, 1000 * seed + 100 * client + i + 2));
    return own;
  }))).flat();
  const seconds = (performance.now() - begun) / 1000;
  agent.destroy();
  const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0);
  return { seconds, requests: answers.length, tokens, first: answers.map(({ first }) => first), gaps: answers.flatMap(({ times }) => gapsOf(times)) };
}

/**
 * Newcomers one after the other, alone and then while others write.
 * @returns {Promise<{alone: number[], first: number[], step: number, gaps: number[]}>} ms to a newcomer's first token, alone and in company; between two
 *   tokens of a writer while nobody comes (median); and the longest such time while each newcomer is read
 */
export async function newcomers(url, { seed }) {
  const agent = new Agent();
  const come = async (from) => {
    const answers = [];
    for (let i = 0; i < COMPANY.newcomers; i++) answers.push(await ask(url, agent, COMPANY.newcomer, 1000 * seed + from + i));
    return answers;
  };
  const alone = await come(0);
  const leave = new AbortController();
  const written = Array.from({ length: COMPANY.writers }, () => []);
  const work = written.map((times, i) => ask(url, agent, COMPANY, 1000 * seed + 500 + i, { signal: leave.signal, times }).catch((error) => {
    if (!leave.signal.aborted) throw error;
  }));
  const ended = Promise.all(work).then(() => { throw new Error('the writers were ready before the newcomers had come'); });
  ended.catch(() => {});
  const more = async () => {
    const from = written.map(({ length }) => length);
    while (written.some(({ length }, i) => length < from[i] + COMPANY.settled)) await Promise.race([ended, sleep(20)]);
    return written.flatMap((times, i) => gapsOf(times.slice(from[i])));
  };
  await more();
  const step = quantile(await more(), 0.5);
  const answers = await Promise.race([ended, come(100)]);
  leave.abort();
  await Promise.allSettled(work);
  agent.destroy();
  const longest = ({ sent, first }) => Math.max(...written.flatMap((times) => (
    times.slice(1).flatMap((time, i) => (time > sent && times[i] < sent + first ? [time - times[i]] : [])))));
  return { alone: alone.map(({ first }) => first), first: answers.map(({ first }) => first), step, gaps: answers.map(longest) };
}

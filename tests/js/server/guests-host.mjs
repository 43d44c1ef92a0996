// SPDX-License-Identifier: MIT
// Shared by the tests of hostile guests: a model with vision, with random weights and a vocabulary of real size, and
// `quern serve` with it as a process of its own whose threads are watched.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeModel } from '../../fixtures/make-model.mjs';
import { makeProjector } from '../../fixtures/make-projector.mjs';
import { until } from '../support/helper.mjs';
import { start } from '../support/program.mjs';
import { ask } from '../support/serve-host.mjs';

/** Dimensions: of a model that takes some milliseconds per token, and of Qwen3-0.6B. */
export const SMALL = { layers: 4, hidden: 256, ffn: 768, heads: 2, kvHeads: 1, type: 'q8_0' };
export const LARGE = { hidden: 1024, ffn: 3072, type: 'q4_0' };

const PROBE = new URL('stretch-probe.mjs', import.meta.url).href;

/** A folder that is deleted at the end of this process. */
export function folderOf(name) {
  const folder = mkdtempSync(join(tmpdir(), `quern-${name}-`));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** @param {object} dims SMALL or LARGE @returns {{model: string, projector: string}} */
export function makeSeeing(folder, dims) {
  const [model, projector] = ['model', 'projector'].map((name) => join(folder, `${name}.gguf`));
  makeModel({ preset: 'qwen3-vl-2b', ...dims, out: model });
  makeProjector({ preset: 'qwen3-vl-2b', type: 'q8_0', layers: 18, hidden: 128, ffn: 256, heads: 2, side: 16, outDim: dims.hidden, out: projector });
  return { model, projector };
}

/**
 * Starts a server as a process.
 * @param {{model: string, projector: string}} files
 * @param {{keys?: string[], flags?: string[], probe?: string}} [how] probe: a file for the times that threads were held
 */
export async function serving(t, { model, projector }, { keys = [], flags = [], probe } = {}) {
  if (probe) writeFileSync(probe, '');
  const all = ['--vision', projector, '--port', '0', '--threads', '1', ...flags, ...keys.flatMap((key) => ['--api-key', key])];
  const { child, got } = start(['serve', model, ...all], probe && { flags: ['--import', PROBE], env: { QUERN_PROBE: probe } });
  t.after(() => child.kill('SIGKILL'));
  await until(() => /is served at http/.test(got.err) || child.exitCode !== null, 60_000);
  return { child, got, port: Number(/is served at http:\/\/127\.0\.0\.1:(\d+)/.exec(got.err)?.[1] ?? assert.fail(got.err)) };
}

/** The server's metrics. */
export async function metric(port, name, key) {
  const { body } = await ask(port, 'GET', '/metrics', { headers: key && { 'X-Api-Key': key } });
  return Number(new RegExp(`^quern_${name} (\\S+)$`, 'm').exec(body)?.[1]);
}

/**
 * Reads the new lines of a probe's file.
 * @returns {() => Record<string, number>} longest time in ms that each thread was held since the last call
 */
export function watch(probe) {
  let read = readFileSync(probe, 'utf8').length;
  return () => {
    const text = readFileSync(probe, 'utf8');
    const most = {};
    for (const line of text.slice(read).split('\n').filter(Boolean)) {
      const { thread, ms } = JSON.parse(line);
      most[thread] = Math.max(most[thread] ?? 0, ms);
    }
    read = text.length;
    return most;
  };
}

/**
 * Sends one request with bytes as its body.
 * @returns {Promise<{status: number, ms: number, bytes: number, text: string}>} status 0: it took longer than `most` ms
 */
export function send(port, { method, path, body }, { key, most = Infinity } = {}) {
  return new Promise((resolve) => {
    const begun = performance.now();
    const told = { status: 0, ms: 0, bytes: 0, text: '' };
    const socket = connect(port, '127.0.0.1');
    const timer = most < Infinity ? setTimeout(() => socket.destroy(), most) : undefined;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      told.bytes += data.length;
      if (told.text.length < 4000) told.text += data.toString('latin1');
    });
    socket.on('close', () => {
      clearTimeout(timer);
      told.ms = performance.now() - begun;
      told.status = Number(/^HTTP\/1.1 (\d+)/.exec(told.text)?.[1] ?? 0);
      resolve(told);
    });
    const own = key ? `X-Api-Key: ${key}\r\n` : '';
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${own}Connection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body);
  });
}

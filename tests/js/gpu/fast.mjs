// SPDX-License-Identifier: MIT
// Run by fast.test.mjs: how far the logits of golden models by fast kernels are from those of the processor's scalar
// kernels, and from exact ones; and whether a conversation that one saved is taken by the other. Arguments: MODELs.

import { readFile } from 'node:fs/promises';
import { GOLDEN, PROJECT, tokens } from '../../fixtures/golden.mjs';
import { goldenBytes, logitsOf, open, printOf, tell } from './engines.mjs';

/** The rows of logits. */
function rowsOf(bytes, n) {
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const size = all.length / n;
  return Array.from({ length: n }, (_, i) => all.subarray(i * size, (i + 1) * size));
}

function logSoftmax(row) {
  const most = row.reduce((a, b) => Math.max(a, b));
  const sum = row.reduce((total, x) => total + Math.exp(x - most), 0);
  return Array.from(row, (x) => x - most - Math.log(sum));
}

function divergence(wanted, found) {
  const [p, q] = [wanted, found].map(logSoftmax);
  return p.reduce((sum, x, i) => sum + Math.exp(x) * (x - q[i]), 0);
}

const topOf = (row) => row.reduce((top, x, i) => (x > row[top] ? i : top), 0);

/** Whether both have the same top token, or the first a margin below twice the row's largest error. */
function isTopAlike(wanted, found) {
  const top = topOf(wanted);
  if (topOf(found) === top) return true;
  const second = wanted.reduce((most, x, i) => (i === top ? most : Math.max(most, x)), -Infinity);
  return wanted[top] - second < 2 * wanted.reduce((most, x, i) => Math.max(most, Math.abs(x - found[i])), 0);
}

/** The mean divergence of rows, and how many have another top token. */
function compare(wanted, found) {
  const kl = found.reduce((sum, row, i) => sum + divergence(wanted[i], row), 0) / found.length;
  return { kl, tops: found.filter((row, i) => !isTopAlike(wanted[i], row)).length };
}

for (const name of process.argv.slice(2)) {
  const bytes = await goldenBytes(name);
  const exact = rowsOf(await readFile(`${PROJECT}/${GOLDEN}/${name}.exact.f32`), tokens.length);
  const onProcessor = await open(bytes);
  const processor = rowsOf(await logitsOf(onProcessor.engine, tokens), tokens.length);
  const print = await printOf(onProcessor);
  for (const chunk of [48, 3]) {
    const some = chunk < 8 ? 24 : tokens.length;
    const opened = await open(bytes, { chunk, onDevice: true, gpu: 'fast' });
    const found = rowsOf(await logitsOf(opened.engine, tokens.slice(0, some)), some);
    const isSame = opened.device.facts.exact || await printOf(opened) === print;
    tell({ name, chunk, isSame, fromExact: compare(exact, found), fromProcessor: compare(processor, found) });
    opened.device.close();
  }
}
process.exit();

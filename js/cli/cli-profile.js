// SPDX-License-Identifier: MIT
// Formats a profile as tables: the cost of each operation while the prompt was read and while text was written.

import { sum } from '../shared/sum.js';

const COLUMNS = ['calls', 'ms', '%', 'GMAC/s', 'GB/s', 'barriers'];

const row = (name, cells) => `${name.padEnd(36)}${cells.map((cell) => cell.padStart(10)).join('')}\n`;

function operationRow({ name, calls, ms, macs, bytes, barriers }, total) {
  const rate = (n) => (n ? (n / ms / 1e6).toFixed(1) : '');
  return row(name, [
    String(calls),
    ms.toFixed(2),
    ((100 * ms) / total).toFixed(1),
    rate(macs),
    rate(bytes),
    String(barriers),
  ]);
}

/** Milliseconds of each layer, over all operations. */
const layerSums = (operations) =>
  operations[0].layerMs.map((_, layer) => sum(operations.map(({ layerMs }) => layerMs[layer])));

function phaseTable(name, { tokens, drafts, ms, barriers, operations }, clockMs, { threads, barrierUs }) {
  if (operations.length === 0) return '';
  const outside = sum(operations.map(({ outsideMs }) => outsideMs));
  return (
    `\n${name} of ${tokens} tokens${drafts ? `, ${drafts} of them drafts` : ''}: ${ms.toFixed(2)} of ${clockMs.toFixed(2)} ms in operations, ` +
    `${(barriers / tokens).toFixed(1)} barriers per token, ${barrierUs.toFixed(2)} us each when empty; ${threads} threads in the end\n` +
    row('operation', COLUMNS) +
    operations.map((operation) => operationRow(operation, ms)).join('') +
    `ms per layer: ${layerSums(operations)
      .map((value) => value.toFixed(2))
      .join(' ')}; outside: ${outside.toFixed(2)}\n`
  );
}

/**
 * @param {import('../index.d.ts').Profile} profile
 * @param {{prefillMs: number, decodeMs: number}} timings measured by the clock
 */
export function profileTables(profile, { prefillMs, decodeMs }) {
  return (
    phaseTable('prefill', profile.prefill, prefillMs, profile) + phaseTable('decode', profile.decode, decodeMs, profile)
  );
}

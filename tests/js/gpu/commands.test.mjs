// SPDX-License-Identifier: MIT
// js/gpu/commands.js has the numbers of src/compute/gpu/port.h.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { COMMAND, KERNELS, READ_WORDS } from '../../../js/gpu/commands.js';

test('the words of commands and reads, and the numbers of kernels', async () => {
  const header = String(await readFile(new URL('../../../src/compute/gpu/port.h', import.meta.url))).replaceAll(/\/\*.*?\*\//gs, '');
  const within = (name) => new RegExp(`${name} \\{(.*?)\\n\\}`, 's').exec(header)[1];
  const names = [...within('enum gpu_kernel').matchAll(/GPU_(\w+)/g)].map(([, name]) => name.toLowerCase());
  assert.deepEqual(names, [...KERNELS, 'kernels']);
  const params = Number(/GPU_PARAMS = (\d+)/.exec(header)[1]);
  const places = {};
  let at = 0;
  for (const [, name, n] of within('struct gpu_command').replace('GPU_PARAMS', params).matchAll(/(\w+)(?:\[(\d+)\])?(?=[,;])/g)) {
    places[name] = at;
    at += Number(n ?? 1);
  }
  const { kernel, layout, matrix, pages, groups, head_dim: dim, params: first } = places;
  assert.deepEqual({ words: at, kernel, layout, matrix, pages, groups, dim, params: first }, COMMAND);
  assert.equal([...within('struct gpu_read').matchAll(/\w+(?=[,;])/g)].length, READ_WORDS);
});

// SPDX-License-Identifier: MIT
// The graphics device in Node, by the package `webgpu`, which the caller installs if it is wanted.

import { openWith } from '../gpu/choice.js';
import { QuernError } from '../shared/errors.js';

export { without } from '../gpu/choice.js';

/** Before this version of Node, uploads cannot be views of shared memory. */
const VIEWS = 22;

/** Must stay referenced: the device goes with it. */
let gpu;

async function find() {
  const { create } = await import('webgpu').catch((cause) => {
    const how = 'In Node a graphics device needs the package webgpu: npm install webgpu.';
    throw new QuernError('env/gpu', how, { phase: 'start', cause });
  });
  gpu ??= create([]);
  return gpu;
}

/** @param {import('../gpu/choice.js').Wanted} wanted @param {{post: (message: object) => void}} host */
export const openFor = (wanted, host) =>
  openWith(find, { copies: Number.parseInt(process.versions.node) < VIEWS }, wanted, host);

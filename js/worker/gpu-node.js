// SPDX-License-Identifier: MIT
// The graphics device in Node, by the package `webgpu`, which the caller installs if it is wanted.

import { openDevice as open } from '../gpu/device.js';
import { QuernError } from '../shared/errors.js';

/** Before this version of Node, uploads cannot be views of shared memory. */
const VIEWS = 22;

/** Must stay referenced: the device goes with it. */
let gpu;

/** @param {object} [how] of js/gpu/device.js */
export async function openDevice(how) {
  const { create } = await import('webgpu').catch((cause) => {
    const how = 'In Node a graphics device needs the package webgpu: npm install webgpu.';
    throw new QuernError('env/gpu', how, { phase: 'start', cause });
  });
  gpu ??= create([]);
  return open(gpu, { ...how, copies: Number.parseInt(process.versions.node) < VIEWS });
}

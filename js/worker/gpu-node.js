// SPDX-License-Identifier: MIT
// The graphics device outside pages: that of the runtime, if it has WebGPU as Deno has with --unstable-webgpu, or in
// Node by the package `webgpu`, which the caller installs if it is wanted.

import { openWith } from '../gpu/choice.js';
import { QuernError } from '../shared/errors.js';

export { without } from '../gpu/choice.js';

/** Before this version of Node, uploads cannot be views of shared memory. */
const VIEWS = 22;

/** Must stay referenced: the device goes with it. */
let gpu;

async function find() {
  if (globalThis.navigator?.gpu) return globalThis.navigator.gpu;
  const { create } = await import('webgpu').catch((cause) => {
    const how = 'In Node a graphics device needs the package webgpu: npm install webgpu.';
    throw new QuernError('env/gpu', how, { phase: 'start', cause });
  });
  gpu ??= create([]);
  return gpu;
}

/** Devices that were opened here. @type {import('../gpu/device.js').Device[]} */
const opened = [];

/** @param {import('../gpu/choice.js').Wanted} wanted @param {{post: (message: object) => void}} host */
export async function openFor(wanted, host) {
  const device = await openWith(find, { copies: Number.parseInt(process.versions.node) < VIEWS }, wanted, host);
  if (device) opened.push(device);
  return device;
}

/** Closes all devices: the package ends the whole process if a thread ends that a promise of it waits for. */
export async function closeAll() { await Promise.all(opened.map((device) => device.end())); }

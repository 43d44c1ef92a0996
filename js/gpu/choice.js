// SPDX-License-Identifier: MIT
// Whether a graphics device computes. With 'webgpu' it must; with 'auto' the processor computes what the device cannot,
// and says why. The kernels are the exact ones unless the caller has asked for the fast ones: no device falls back to
// those by itself, because the text would no longer be that of other devices.

import { QuernError } from '../shared/errors.js';
import { NOTICE } from '../shared/protocol.js';
import { Device, unavailable } from './device.js';

/** Whether the processor would compute in place of a graphics device, and more slowly than the engine itself. */
function isSoftware({ info = {}, isFallbackAdapter }) {
  const names = `${info.architecture} ${info.description}`;
  return Boolean(info.isFallbackAdapter ?? isFallbackAdapter) || /software|swiftshader|llvmpipe/i.test(names);
}

/**
 * @param {GPU | undefined} gpu navigator.gpu, or that of the package `webgpu` in Node
 * @param {object} [how]
 * @param {boolean} [how.copies] whether uploads must not be views of shared memory
 * @param {boolean} [how.fast] whether other bits than the processor's will do
 * @param {boolean} [how.mustBeExact] whether software is refused, and devices that flush subnormal numbers
 * @param {(text: string) => void} [how.tell] gets the reason if the device is lost
 * @param {(shader: string) => string | null} [how.change] for tests, of faultsOf()
 * @returns {Promise<Device>}
 */
export async function openDevice(gpu, how = {}) {
  if (!gpu) throw unavailable('There is no WebGPU here.');
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter) throw unavailable('WebGPU has found no graphics device that may be used.');
  const isSlow = isSoftware(adapter);
  if (how.mustBeExact && isSlow) throw unavailable('WebGPU has only a device in software here.');
  const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
  const device = await adapter
    .requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } })
    .catch((error) => { throw unavailable('The graphics device cannot be used.', error); });
  const made = new Device(gpu, adapter, device, { ...how, isSlow });
  await made.try(how.change);
  return made;
}

/**
 * Options of the load.
 * @typedef {{backend: 'webgpu' | 'auto', gpu?: 'exact' | 'fast'}} Wanted
 */

/**
 * What computes after the device has failed or refused a model: null, the processor.
 * @param {any} error @param {Wanted} wanted @param {{post: (message: object) => void}} host
 * @param {?import('./device.js').Device} [device]
 */
export function without(error, { backend }, host, device = null) {
  device?.close();
  if (backend !== 'auto')
    throw error.detail?.rule === 'gpu' ? new QuernError('env/gpu', error.message, { phase: 'load' }) : error;
  host.post({ type: NOTICE, text: `quern: the processor computes: ${error.message}` });
  return null;
}

/**
 * Opens the device for a load. @param {() => Promise<object>} find finds WebGPU @param {object} [how] of openDevice()
 * @param {Wanted} wanted
 * @returns {Promise<?import('./device.js').Device>}
 */
export async function openWith(find, how, wanted, host) {
  const { backend, gpu } = wanted;
  try {
    const tell = (text) => host.post({ type: NOTICE, text });
    return await openDevice(await find(), { ...how, tell, fast: gpu === 'fast', mustBeExact: backend === 'auto' });
  } catch (error) {
    return without(error, wanted, host);
  }
}

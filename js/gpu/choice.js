// SPDX-License-Identifier: MIT
// Whether a graphics device computes. With 'webgpu' it must; with 'auto' the processor computes what the device cannot,
// and says why. The kernels are the exact ones unless the caller has asked for the fast ones: no device falls back to
// those by itself, because the text would no longer be that of other devices.

import { QuernError } from '../shared/errors.js';
import { NOTICE } from '../shared/protocol.js';
import { openDevice } from './device.js';

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
    return await openDevice(await find(), { ...how, fast: gpu === 'fast', mustBeExact: backend === 'auto' });
  } catch (error) {
    return without(error, wanted, host);
  }
}

// SPDX-License-Identifier: MIT
// Whether a graphics device computes. With 'webgpu' it must; with 'auto' the processor computes what the device cannot,
// and says why.

import { QuernError } from '../shared/errors.js';
import { NOTICE } from '../shared/protocol.js';
import { openDevice } from './device.js';

/**
 * What computes after the device has failed or refused a model: null, the processor.
 * @param {any} error @param {'webgpu' | 'auto'} backend @param {{post: (message: object) => void}} host
 * @param {?import('./device.js').Device} [device]
 */
export function without(error, backend, host, device = null) {
  device?.close();
  if (backend !== 'auto')
    throw error.detail?.rule === 'gpu' ? new QuernError('env/gpu', error.message, { phase: 'load' }) : error;
  host.post({ type: NOTICE, text: `quern: the processor computes: ${error.message}` });
  return null;
}

/**
 * Opens the device for a load. @param {() => Promise<object>} find finds WebGPU @param {object} [how] of openDevice()
 * @returns {Promise<?import('./device.js').Device>}
 */
export async function openWith(find, how, backend, host) {
  try {
    return await openDevice(await find(), { ...how, mustBeExact: backend === 'auto' });
  } catch (error) {
    return without(error, backend, host);
  }
}

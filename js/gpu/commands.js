// SPDX-License-Identifier: MIT
// The numbers of src/compute/gpu/port.h: kernels, and the words of a command and of a read.

import { attentionShaders } from './attention.js';
import { encoderShaders } from './encoder.js';
import { fastOf } from './numbers.js';
import { shaders } from './shaders.js';
import { stateShaders } from './states.js';

/** The shaders' names in the order of enum gpu_kernel. */
export const KERNELS = [
  'embed', 'pick', 'rmsnorm', 'quantize', 'product', 'tile', 'floats', 'rope', 'append', 'attend', 'swiglu', 'gate',
  'add', 'bias', 'route', 'places', 'gather', 'combine', 'convolve', 'decay', 'delta', 'later', 'join',
  'layernorm', 'gelu', 'gelu_erf', 'keep', 'attend_all', 'heads',
];

/** Words of struct gpu_command; its params are the last ones. A list of commands is the uniform buffer of its shaders. */
export const COMMAND = { words: 64, kernel: 0, layout: 1, matrix: 2, pages: 3, groups: 4, dim: 7, params: 8 };

/** Words of struct gpu_read: buffer, offset, bytes, to. */
export const READ_WORDS = 4;

const ALL = { ...shaders, ...attentionShaders, ...stateShaders, ...encoderShaders };

/**
 * The WGSL of a kernel.
 * @param {number} kernel of KERNELS
 * @param {{layout: object | null, type: number, dim: number, packed: boolean, fast: boolean}} made layout: of its
 *   matrix; type: of keys and values; dim: of a head; packed: whether the language has dot4I8Packed(); fast: whether
 *   other bits than the processor's will do
 */
export function wgslOf(kernel, made) {
  const wgsl = ALL[KERNELS[kernel]](made);
  return made.fast ? fastOf(wgsl) : wgsl;
}

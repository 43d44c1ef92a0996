// SPDX-License-Identifier: MIT

/**
 * A number that workers share, to be written and awaited with Atomics; undefined if memory cannot be shared.
 * @returns {Int32Array | undefined}
 */
export function sharedWord() {
  return typeof SharedArrayBuffer === 'function' ? new Int32Array(new SharedArrayBuffer(4)) : undefined;
}

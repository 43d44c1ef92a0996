// SPDX-License-Identifier: MIT
// Chunks: the units in which a model is downloaded, stored, verified and read.

/** Bytes of a chunk. The last chunk of a file is shorter. */
export const CHUNK = 1 << 20;

/** Number of chunks that are read from a store at once, and hashed by all threads. */
export const CHUNKS = 4;

/** Converts a hash to the form in a journal. @param {Uint8Array} bytes */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

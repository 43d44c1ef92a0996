// SPDX-License-Identifier: MIT
// The pieces in which a model is fetched, kept, checked and read.

/** Bytes of a chunk; the last one of a file is shorter. */
export const CHUNK = 1 << 20;

/** Chunks that are read from a store in one go, and hashed by all threads. */
export const CHUNKS = 4;

/** A hash as a journal writes it. @param {Uint8Array} bytes */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

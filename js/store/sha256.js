// SPDX-License-Identifier: MIT
// SHA-256, taken as bytes come, of a well-kept library. A file of its own, which is fetched only where the hash of a
// file is known.

export { createSHA256 } from 'hash-wasm';

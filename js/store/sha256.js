// SPDX-License-Identifier: MIT
// Incremental SHA-256 from a well-maintained library. A separate file, which is fetched only if the hash of a file is
// known.

export { createSHA256 } from 'hash-wasm';

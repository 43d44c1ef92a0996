// SPDX-License-Identifier: MIT
// Removes the names of functions, a custom section, from a wasm file. The files in build/wasm/ still have them, for
// profilers.

const HEADER = 8;
const CUSTOM = 0;

/** Reads an unsigned LEB128 number; returns it and its end. */
function readNumber(bytes, at) {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * scale;
    if (byte < 128) return { value, end: at };
  }
}

function isNames(bytes, at) {
  const { value, end } = readNumber(bytes, at);
  return String.fromCharCode(...bytes.subarray(end, end + value)) === 'name';
}

/**
 * @param {Uint8Array} bytes a wasm module
 * @returns {Uint8Array} the same module without its name section
 */
export function withoutNames(bytes) {
  const kept = [bytes.subarray(0, HEADER)];
  for (let at = HEADER; at < bytes.length;) {
    const { value, end } = readNumber(bytes, at + 1);
    if (bytes[at] !== CUSTOM || !isNames(bytes, end)) kept.push(bytes.subarray(at, end + value));
    at = end + value;
  }
  return Buffer.concat(kept);
}

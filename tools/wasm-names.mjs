// SPDX-License-Identifier: MIT
// Takes the names of functions, a custom section, out of a wasm file. They stay in build/wasm/, where a profiler shows
// them.

const HEADER = 8;
const CUSTOM = 0;

/** An unsigned LEB128 number and where it ends. */
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
 * @returns {Uint8Array} the same without its section of names
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

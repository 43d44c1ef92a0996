// SPDX-License-Identifier: MIT
// The checksum of PNG chunks. zlib has it since Node 22.

import * as zlib from 'node:zlib';

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xEDB88320 : crc >>> 1;
  return crc;
});

function slow(bytes) {
  let crc = 0xFFFFFFFF;
  for (let i = 0; i < bytes.length; i++) crc = TABLE[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** @type {(bytes: Uint8Array) => number} */
export const crc32 = zlib.crc32 ?? slow;

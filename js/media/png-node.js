// SPDX-License-Identifier: MIT
// Reads PNG files of every kind in Node, with zlib. Missing, altered or surplus data is refused, and no more is
// inflated than the header announced, which was checked before. Everything that does not concern pixels (colour
// profiles, gamma, text) is ignored; an animation counts as its first image.

import { pipeline } from 'node:stream/promises';
import { createInflate } from 'node:zlib';
import { crc32 } from './crc-node.js';
import { Rows, broken } from './png-rows-node.js';

/** Bytes of rows that are processed at once: a millisecond or two of work. */
const PIECE = 2 ** 18;

/** @returns {{IHDR: Buffer, PLTE?: Buffer, tRNS?: Buffer, IDAT: Buffer[]}} the chunks that make pixels */
function chunksOf(bytes) {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = { IDAT: [] };
  for (let at = 8; ;) {
    const size = at + 12 <= file.length ? file.readUInt32BE(at) : Infinity;
    if (at + 12 + size > file.length) throw broken('it ends too early');
    const type = file.latin1Slice(at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + size);
    if (type === 'IEND') return found;
    if (['IHDR', 'PLTE', 'tRNS', 'IDAT'].includes(type)) {
      if (crc32(file.subarray(at + 4, at + 8 + size)) !== file.readUInt32BE(at + 8 + size))
        throw broken(`its chunk ${type} is altered`);
      if (type === 'IDAT') found.IDAT.push(data);
      else found[type] ??= data;
    }
    at += 12 + size;
  }
}

/**
 * @param {Uint8Array} bytes a file with a valid header
 * @param {import('./limits.js').Slice} slice
 * @returns {Promise<{data: Uint8Array, width: number, height: number}>} RGB or RGBA
 */
export async function readPng(bytes, slice) {
  const { IHDR, IDAT, ...chunks } = chunksOf(bytes);
  const head = {
    width: IHDR.readUInt32BE(0),
    height: IHDR.readUInt32BE(4),
    depth: IHDR[8],
    color: IHDR[9],
    interlaced: IHDR[12] === 1,
  };
  const rows = new Rows(head, chunks);
  await pipeline(IDAT, createInflate({ chunkSize: PIECE }), async (pieces) => {
    for await (const piece of pieces) await slice(() => rows.take(piece));
  }).catch((error) => {
    throw String(error.code).startsWith('Z_') ? broken('its pixels cannot be unpacked', error) : error;
  });
  if (!rows.isWhole) throw broken('it has too few pixels');
  return { data: rows.pixels, width: head.width, height: head.height };
}

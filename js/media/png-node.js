// SPDX-License-Identifier: MIT
// PNG files in Node, every kind of them, over zlib. What is missing, altered or too much is refused, and no more is ever inflated than the header
// has announced, which was looked at before. What does not concern pixels (colour profiles, gamma, text) is passed over; of an animation the first
// image counts.

import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { crc32 } from './crc-node.js';
import { undecoded } from './limits.js';

const inflated = promisify(inflate);

const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const PALETTE = 3;
const MOST_COLORS = 256;

/** Where a pass of an interlaced image begins, and its steps: x, y, dx, dy. */
const PASSES = [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];

const broken = (why, cause) => undecoded(`The PNG file is damaged: ${why}.`, cause);

// --- chunks ---

/** @returns {{IHDR: Buffer, PLTE?: Buffer, tRNS?: Buffer, IDAT: Buffer[]}} those that make pixels */
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
      if (crc32(file.subarray(at + 4, at + 8 + size)) !== file.readUInt32BE(at + 8 + size)) throw broken(`its part ${type} is altered`);
      if (type === 'IDAT') found.IDAT.push(data);
      else found[type] ??= data;
    }
    at += 12 + size;
  }
}

// --- rows ---

/** Undoes a filter in place; `above` is the row before, or zeros. */
const UNFILTER = [
  () => {},
  (row, above, step) => { for (let i = step; i < row.length; i++) row[i] += row[i - step]; },
  (row, above) => { for (let i = 0; i < row.length; i++) row[i] += above[i]; },
  (row, above, step) => {
    for (let i = 0; i < row.length; i++) row[i] += ((i < step ? 0 : row[i - step]) + above[i]) >> 1;
  },
  (row, above, step) => {
    for (let i = 0; i < row.length; i++) {
      const [a, c] = i < step ? [0, 0] : [row[i - step], above[i - step]];
      const [pa, pb, pc] = [Math.abs(above[i] - c), Math.abs(a - c), Math.abs(a + above[i] - 2 * c)];
      row[i] += pa <= pb && pa <= pc ? a : pb <= pc ? above[i] : c;
    }
  },
];

/** Gives each row of an image without interlacing, or of a pass. @param {Buffer} raw from the first row on */
function* rowsOf(raw, { rows, size, step }) {
  let above = new Uint8Array(size);
  for (let y = 0; y < rows; y++) {
    const [filter] = raw.subarray(y * (size + 1));
    const row = raw.subarray(y * (size + 1) + 1, (y + 1) * (size + 1));
    if (!UNFILTER[filter]) throw broken(`there is no filter ${filter}`);
    UNFILTER[filter](row, above, step);
    yield row;
    above = row;
  }
}

/** A row's samples as they are stored, of 1 to 16 bits. */
function unpack(row, depth, samples) {
  if (depth === 8) samples.set(row);
  else if (depth === 16) for (let i = 0; i < samples.length; i++) samples[i] = row[2 * i] << 8 | row[2 * i + 1];
  else {
    const mask = (1 << depth) - 1;
    for (let i = 0; i < samples.length; i++) samples[i] = (row[i * depth >> 3] >> (8 - depth - (i * depth & 7))) & mask;
  }
}

// --- colours ---

/** The image's colours from a pixel's samples on: writes RGB or RGBA. */
class Colors {
  /** Of the pixels that come out. */
  channels;

  /** Whether they are the bytes of the rows. */
  asStored;

  #color;
  #palette;       // RGBA
  #key;           // samples that are transparent
  #byte;          // sample -> 8 bits

  constructor({ color, depth }, { PLTE, tRNS }) {
    this.#color = color;
    if (color === PALETTE) this.#readPalette(PLTE, tRNS);
    else if (tRNS && color < 4) this.#key = this.#keyOf(tRNS);
    this.channels = color >= 4 || tRNS ? 4 : 3;
    this.asStored = depth === 8 && CHANNELS[color] === this.channels;
    const most = 2 ** depth - 1;
    this.#byte = depth === 16 ? (v) => (v * 255 + 32895) >>> 16 : (v) => v * 255 / most;
  }

  #readPalette(colors, alphas = Buffer.alloc(0)) {
    if (!colors?.length || colors.length % 3 || colors.length > 3 * MOST_COLORS) throw broken('its palette is missing or odd');
    this.#palette = Array.from({ length: colors.length / 3 }, (_, i) => [...colors.subarray(3 * i, 3 * i + 3), alphas[i] ?? 255]);
  }

  #keyOf(bytes) {
    const n = CHANNELS[this.#color];
    if (bytes.length < 2 * n) throw broken('its transparent colour is odd');
    return Array.from({ length: n }, (_, c) => bytes.readUInt16BE(2 * c));
  }

  #alpha(samples, at) {
    if (this.#color >= 4) return this.#byte(samples[at + CHANNELS[this.#color] - 1]);
    return this.#key.every((value, c) => value === samples[at + c]) ? 0 : 255;
  }

  write(samples, at, out, to) {
    if (this.#palette) {
      const color = this.#palette[samples[at]];
      if (!color) throw broken('a colour is not in its palette');
      for (let c = 0; c < this.channels; c++) out[to + c] = color[c];
      return;
    }
    const isGrey = CHANNELS[this.#color] < 3;
    for (let c = 0; c < 3; c++) out[to + c] = this.#byte(samples[isGrey ? at : at + c]);
    if (this.channels === 4) out[to + 3] = this.#alpha(samples, at);
  }
}

// --- the image ---

/** Passes with the sizes of their rows; an image that is not interlaced is one. */
function passesOf({ width, height, depth, color, interlaced }) {
  const bits = CHANNELS[color] * depth;
  return (interlaced ? PASSES : [[0, 0, 1, 1]]).map(([x, y, dx, dy]) => {
    const columns = Math.max(0, Math.ceil((width - x) / dx));
    const rows = columns && Math.max(0, Math.ceil((height - y) / dy));
    return { x, y, dx, dy, columns, rows, size: Math.ceil(columns * bits / 8), step: Math.max(1, bits >> 3) };
  });
}

async function inflatedRows(parts, size) {
  try {
    const raw = await inflated(Buffer.concat(parts), { maxOutputLength: size });
    if (raw.length === size) return raw;
  } catch (error) {
    throw broken(error.code === 'ERR_BUFFER_TOO_LARGE' ? 'it has more pixels than it says' : 'its pixels cannot be unpacked', error);
  }
  throw broken('it has fewer pixels than it says');
}

/** @param {Uint8Array} bytes a file whose header is in order @returns {Promise<{data: Uint8Array, width: number, height: number}>} RGB or RGBA */
export async function readPng(bytes) {
  const chunks = chunksOf(bytes);
  const { IHDR } = chunks;
  const head = { width: IHDR.readUInt32BE(0), height: IHDR.readUInt32BE(4), depth: IHDR[8], color: IHDR[9], interlaced: IHDR[12] === 1 };
  const colors = new Colors(head, chunks);
  const passes = passesOf(head);
  const raw = await inflatedRows(chunks.IDAT, passes.reduce((sum, { rows, size }) => sum + rows * (size + 1), 0));
  const { width, height, depth, color } = head;
  const { channels } = colors;
  const data = new Uint8Array(width * height * channels);
  let from = 0;
  for (const pass of passes) {
    const samples = new Uint16Array(pass.columns * CHANNELS[color]);
    let y = pass.y;
    for (const row of rowsOf(raw.subarray(from), pass)) {
      if (colors.asStored && pass.dx === 1 && pass.x === 0) data.set(row, channels * y * width);
      else {
        unpack(row, depth, samples);
        let to = channels * (y * width + pass.x);
        for (let i = 0; i < samples.length; i += CHANNELS[color], to += channels * pass.dx) colors.write(samples, i, data, to);
      }
      y += pass.dy;
    }
    from += pass.rows * (pass.size + 1);
  }
  return { data, width, height };
}

// SPDX-License-Identifier: MIT
// Reads the entries of a zip archive, in which office documents, books and conversations are packed, by the directory
// at its end (APPNOTE.TXT of PKWARE, 4.3). The browser inflates. No size that the archive states is believed: the bytes
// are counted as they come, and an archive that inflates to more than its limit is refused before it does. Deflate
// makes a byte from a bit at best, so small pieces of input bound the memory of one step.
import { Refusal } from './refusal.js';

/** Most inflated bytes of a document, all entries that are read together. */
const MOST = 64 * 2 ** 20;

/** Bytes that are inflated at once: they become some 16 MB at most. */
const PIECE = 2 ** 14;

/** The longest end of an archive: the record of its directory, and a comment. */
const END = 22 + 0xffff;

const damaged = () => new Refusal('{1} is damaged: its archive ends too early or has wrong bytes.');

const viewOf = async (blob) => new DataView(await blob.arrayBuffer());

export class Zip {
  #file;
  #entries = new Map();   // name -> {at, size, method, locked}
  #most;
  #left;

  /** @param {Blob} file @param {number} [most] inflated bytes @returns {Promise<Zip>} */
  static async open(file, most = MOST) {
    const zip = new Zip();
    zip.#file = file;
    zip.#most = zip.#left = most;
    try {
      await zip.#readDirectory();
    } catch (error) {
      throw error instanceof RangeError ? damaged() : error;
    }
    return zip;
  }

  /** Names of the entries, in the order of the directory. */
  get names() { return [...this.#entries.keys()]; }

  /** @returns {Promise<string>} the text of an entry; '' if there is none */
  async text(name) {
    const decoder = new TextDecoder();
    const parts = [];
    for await (const bytes of this.#read(name)) parts.push(decoder.decode(bytes, { stream: true }));
    return parts.join('') + decoder.decode();
  }

  /** @returns {Promise<Blob>} the bytes of an entry; none if there is no such entry */
  async blob(name) {
    const parts = [];
    for await (const bytes of this.#read(name)) parts.push(bytes);
    return new Blob(parts);
  }

  /** The bytes of an entry, in pieces, which are counted. */
  async* #read(name) {
    const entry = this.#entries.get(name);
    if (!entry) return;
    if (entry.locked) throw new Refusal('{1} is protected by a password. Save a copy without one.');
    for await (const bytes of this.#inflate(entry)) {
      this.#left -= bytes.length;
      if (this.#left < 0)
        throw new Refusal('{1} would unpack to more than {2} MB, so it is not read.', this.#most / 2 ** 20);
      yield bytes;
    }
  }

  async #readDirectory() {
    const { size } = this.#file;
    const end = await viewOf(this.#file.slice(Math.max(0, size - END)));
    let at = end.byteLength - 22;
    while (at >= 0 && end.getUint32(at, true) !== 0x06054b50) at--;
    if (at < 0) throw damaged();
    const first = end.getUint32(at + 16, true);
    const directory = await viewOf(this.#file.slice(first, first + end.getUint32(at + 12, true)));
    let from = 0;
    for (let left = end.getUint16(at + 10, true); left > 0; left--) from = this.#addEntry(directory, from);
  }

  /** @returns {number} where the next record of the directory begins */
  #addEntry(view, at) {
    if (view.getUint32(at, true) !== 0x02014b50) throw damaged();
    const u16 = (place) => view.getUint16(at + place, true);
    const u32 = (place) => view.getUint32(at + place, true);
    const name = new TextDecoder().decode(new Uint8Array(view.buffer, at + 46, u16(28)));
    this.#entries.set(name, { at: u32(42), size: u32(20), method: u16(10), locked: (u16(8) & 1) === 1 });
    return at + 46 + u16(28) + u16(30) + u16(32);
  }

  /** The bytes of an entry, in pieces. */
  async* #inflate({ at, size, method }) {
    const head = await viewOf(this.#file.slice(at, at + 30));
    if (head.byteLength < 30 || head.getUint32(0, true) !== 0x04034b50 || ![0, 8].includes(method)) throw damaged();
    const from = at + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const packed = this.#file.slice(from, from + size);
    if (packed.size < size) throw damaged();
    let taken = 0;
    const pieces = new ReadableStream({
      async pull(stream) {
        const piece = packed.slice(taken, taken += PIECE);
        if (piece.size) stream.enqueue(new Uint8Array(await piece.arrayBuffer()));
        else stream.close();
      },
    }, { highWaterMark: 0 });
    const reader = (method === 8 ? pieces.pipeThrough(new DecompressionStream('deflate-raw')) : pieces).getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => { throw damaged(); });
      if (done) return;
      yield value;
    }
  }
}

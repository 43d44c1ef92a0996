// SPDX-License-Identifier: MIT
// The journal of a stored model: which chunks of its files are stored, and the hashes of their bytes. It is only
// appended to, one line per record. Each line has a checksum, so that a crash at any moment costs only the record being
// written. Its claims are verified against the bytes before use, so the order of flushes does not matter.
//
//   ["quern", VERSION, {id, name, files: [{url, size, etag, lastModified}], projectors?}]   begins a model; everything
//                                                                                            before is dropped
//   ["chunk", file, index, hash]      this MiB is stored
//   ["done", [size...], [sha256...]]  all chunks are stored; sha256 is '' where no correct hash is known
//   ["used", milliseconds]            since 1970

import { sum } from '../shared/sum.js';

const VERSION = 3;
const MAX_FILES = 1000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** FNV-1a. @param {Uint8Array} bytes */
function checksum(bytes) {
  let sum = 0x811c9dc5;
  for (const byte of bytes) sum = Math.imul(sum ^ byte, 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, '0');
}

/** Encodes a record as a line. */
export function line(...record) {
  const text = JSON.stringify(record);
  return encoder.encode(`${checksum(encoder.encode(text))} ${text}\n`);
}

/** The record of a line, or null if the line is damaged. */
function recordOf(bytes) {
  const body = bytes.subarray(9);
  if (decoder.decode(bytes.subarray(0, 9)) !== `${checksum(body)} `) return null;
  try {
    const record = JSON.parse(decoder.decode(body));
    return Array.isArray(record) ? record : null;
  } catch {
    return null;
  }
}

const isSize = (value) => Number.isSafeInteger(value) && value >= 0;
const isText = (value) => typeof value === 'string' && value.length <= 10_000;
const isFile = (file) => isText(file?.url) && isSize(file.size) && isText(file.etag) && isText(file.lastModified);
const isHeader = (header) => isText(header?.id) && isText(header.name) && Array.isArray(header.files)
  && header.files.length > 0 && header.files.length <= MAX_FILES && header.files.every(isFile);

/** The contents of the records read so far. */
export class Journal {
  header = null;
  done = null;           // {sizes, hashes}
  used = 0;
  bytes = 0;             // length of the journal, as far as it was read
  torn = false;          // whether it ends in the middle of a line
  #chunks = new Map();   // file -> Map from index to hash

  /** @param {Uint8Array} bytes appended since the last call */
  read(bytes) {
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      this.#apply(recordOf(bytes.subarray(start, end)));
      start = end + 1;
    }
    this.bytes += start;
    this.torn = start < bytes.length;
    return this;
  }

  #apply(record) {
    const [type, ...rest] = record ?? [];
    if (type === 'quern') this.#begin(...rest);
    else if (this.header && type === 'chunk') this.#chunk(...rest);
    else if (this.header && type === 'done') this.#finish(...rest);
    else if (this.header && type === 'used' && isSize(rest[0])) [this.used] = rest;
  }

  #begin(version, header) {
    this.header = version === VERSION && isHeader(header) ? header : null;
    this.done = null;
    this.used = 0;
    this.#chunks.clear();
  }

  #chunk(file, index, hash) {
    if (!isSize(file) || file >= this.header.files.length || !isSize(index) || !/^[0-9a-f]{32}$/.test(hash)) return;
    if (!this.#chunks.has(file)) this.#chunks.set(file, new Map());
    this.#chunks.get(file).set(index, hash);
  }

  #finish(sizes, hashes) {
    const { length } = this.header.files;
    if (
      Array.isArray(sizes) &&
      sizes.length === length &&
      sizes.every(isSize) &&
      Array.isArray(hashes) &&
      hashes.length === length
    ) {
      this.done = { sizes, hashes };
    }
  }

  /** The hash of a stored chunk. */
  hash(file, index) {
    return this.#chunks.get(file)?.get(index);
  }

  /** Indices of the stored chunks of a file, ascending. */
  stored(file) {
    return [...this.#chunks.get(file)?.keys() ?? []].sort((a, b) => a - b);
  }

  /** Bytes of a file; 0 while unknown. */
  size(file) {
    return this.done?.sizes[file] ?? this.header?.files[file]?.size ?? 0;
  }

  /** Bytes of all files; 0 while unknown. */
  get total() {
    const sizes = this.header?.files.map((_, file) => this.size(file)) ?? [];
    return sizes.includes(0) && !this.done ? 0 : sum(sizes);
  }

  /** Bytes in the stored chunks. */
  loaded(chunkSize) {
    let sum = 0;
    for (const [file, hashes] of this.#chunks) {
      for (const index of hashes.keys())
        sum += Math.min(chunkSize, Math.max(0, (this.size(file) || Infinity) - index * chunkSize));
    }
    return sum;
  }
}

/** The record that begins a journal. */
export const headerLine = (header) => line('quern', VERSION, header);

/**
 * Whether two files are the same version. Dates decide if an ETag is missing; a file without a size cannot be compared.
 */
function sameVersion(file, { size, etag, lastModified }) {
  const differ =
    file.etag && etag ? file.etag !== etag : file.lastModified && lastModified && file.lastModified !== lastModified;
  return file.size > 0 && file.size === size && !differ;
}

/** Whether a list of files begins with the same versions as `others`. */
export const beginsWith = (files, others) =>
  files.length >= others.length && others.every((other, i) => sameVersion(files[i], other));

/**
 * How many of the stored files can be used: all, or those of the language model if its projector differs or is not
 * wanted.
 */
export function storedOf(stored, { files, projectors = 0 }) {
  const n = files.length - projectors;
  if (!beginsWith(stored.files, files.slice(0, n)) || stored.files.length - (stored.projectors ?? 0) !== n) return 0;
  return projectors && beginsWith(stored.files, files) && stored.files.at(-1).url === files.at(-1).url
    ? files.length
    : n;
}

/** Whether these are the files of the same journal. */
export const sameFiles = (files, others) => files === others || JSON.stringify(files) === JSON.stringify(others);

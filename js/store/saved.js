// SPDX-License-Identifier: MIT
// Saved conversations as files of a store (MODEL.md has the layout): names and sizes of the files, and reading,
// cutting, extending and removing them. The engine checks headers and records (src/engine/saved.c). After the last
// record stands the time of the last use, so that the oldest file can be removed first. A crash leaves an incomplete
// record at the end, which the next write cuts off.

import { alone, storageError } from './guard.js';
import { keyOf, readAll, writeAll } from './store.js';

const HEADER = 4096;
const HEAD = 512;           // bytes of a record before its page
const DATE = 8;             // u64, milliseconds since 1970
const FILE = /^kv-[0-9a-f]{32}$/;

/** Tokens of a page. */
export const PAGE = 32;

/** How long to wait for a file that another user holds. */
const PATIENCE_MS = 3000;

const SENTENCES = {
  'storage/quota': 'There is not enough space to save the conversation; it goes on unsaved.',
  'storage/unavailable': 'Conversations cannot be saved here; they go on unsaved.',
  'storage/corrupt': 'The saved conversation is damaged, of another model, or saved with another `kv`; it is read again.',
};

/** The sentence for an error on the console. */
export const sentenceOf = (code) => SENTENCES[code] ?? 'The conversation is not saved.';

const fileOf = async (name) => `kv-${await keyOf(name)}`;

/**
 * Works with the file of a name while no other user does; otherwise throws `storage/busy`.
 * @param {object} store guarded
 */
export async function holding(store, name, work, patienceMs = PATIENCE_MS) {
  return alone(
    store,
    await fileOf(name),
    { patienceMs, busy: storageError('storage/busy', 'a conversation of this name is being saved') },
    work,
  );
}

export class SavedFile {
  #file;
  #record;
  #size;

  /** @param {number} record bytes of a record @param {{write?: boolean}} [options] write: makes a missing file */
  static async open(store, name, record, { write = false } = {}) {
    const kept = new SavedFile();
    kept.#file = await store.open(await fileOf(name), { write });
    kept.#record = record;
    kept.#size = await kept.#file?.size();
    return kept.#file && kept;
  }

  /** Number of whole records, if the header is that of the current model. */
  get records() { return Math.max(0, Math.floor((this.#size - HEADER) / this.#record)); }

  /** Whether an incomplete record follows them. */
  get isTorn() { return ![0, HEADER, this.#at(this.records) + DATE].includes(this.#size); }

  #at(index) { return HEADER + index * this.#record; }

  /** Whether the file begins with these bytes. */
  async beginsWith(header) {
    const own = new Uint8Array(HEADER);
    return await readAll(this.#file, 0, own) === HEADER && own.every((byte, i) => byte === header[i]);
  }

  /** Bytes of a record that the engine needs: all of it, or only its head. */
  lengthOf(isWanted) { return isWanted ? this.#record : HEAD; }

  /**
   * Fills `target` from the beginning of a record.
   * @returns {Promise<Uint8Array | null>} `target`; null if the file ends before
   */
  async read(index, target) {
    return await readAll(this.#file, this.#at(index), target) === target.length ? target : null;
  }

  async begin(header) {
    await this.#file.truncate(0);
    this.#size = HEADER;
    await writeAll(this.#file, 0, header);
  }

  /** Keeps only the first `records` records. */
  async cut(records) {
    await this.#file.truncate(this.#at(records));
    this.#size = this.#at(records);
  }

  /** Adds a record. */
  async add(record) {
    await writeAll(this.#file, this.#size, record);
    this.#size += record.length;
  }

  /**
   * Cuts off an incomplete end and adds the time of this use. Nothing is flushed, since that would block the worker
   * while hundreds of megabytes are written: after a power cut the hashes show what is valid.
   */
  async finish() {
    await this.cut(this.records);
    const date = new DataView(new ArrayBuffer(DATE));
    date.setBigUint64(0, BigInt(Date.now()), true);
    await writeAll(this.#file, this.#at(this.records), new Uint8Array(date.buffer));
  }

  close() { return this.#file.close(); }
}

/** Number of records of a state after the pages, from the header. @param {Uint8Array} header */
export const statesIn = ({ buffer }) => new DataView(buffer).getUint32(52, true);

/** Reads the name and the size of records from a header; null if it makes no sense. */
async function readHeader(bytes, file) {
  const view = new DataView(bytes.buffer);
  const name = new TextDecoder().decode(bytes.subarray(74, 74 + view.getUint16(72, true)));
  const record = Number(view.getBigUint64(32, true));
  return record > 0 && name && await fileOf(name) === file ? { name, record, states: statesIn(bytes) } : null;
}

/** Describes a file: {file, name, tokens, bytes, date}; the name is '' if the header has none. */
async function describe(store, file) {
  const open = await store.open(file, { write: false });
  if (!open) return null;
  try {
    const bytes = await open.size();
    const header = new Uint8Array(HEADER);
    const known = await readAll(open, 0, header) === HEADER ? await readHeader(header, file) : null;
    if (!known) return { file, name: '', tokens: 0, bytes, date: 0 };
    const records = Math.floor((bytes - HEADER) / known.record);
    const end = HEADER + records * known.record;
    const date = new Uint8Array(DATE);
    const isDated = bytes === end + DATE && await readAll(open, end, date) === DATE;
    const tokens = Math.max(0, records - known.states) * PAGE;
    return {
      file,
      name: known.name,
      tokens,
      bytes,
      date: isDated ? Number(new DataView(date.buffer).getBigUint64(0, true)) : 0,
    };
  } finally {
    await open.close();
  }
}

async function describeAll(store) {
  const files = (await store.list()).filter((file) => FILE.test(file));
  const all = [];
  for (const file of files) all.push(await describe(store, file));
  return all.filter(Boolean);
}

const removeFile = (store, file, patienceMs) => {
  const busy = storageError('storage/busy', 'the conversation is being saved');
  return alone(store, file, { patienceMs, busy }, () => store.remove(file));
};

/** Whether the store has saved conversations; false if it cannot say. @param {object} store guarded */
export const savesAny = async (store) => (await store.list().catch(() => [])).some((file) => FILE.test(file));

/** The saved conversations, last used first. @param {object} store guarded */
export async function listSaved(store) {
  const all = (await describeAll(store)).filter(({ name }) => name);
  return all.sort((a, b) => b.date - a.date).map(({ name, tokens, bytes, date }) => ({ name, tokens, bytes, date }));
}

/** Removes a file that the caller holds. */
export const removeSaved = async (store, name) => store.remove(await fileOf(name));

/** Removes the conversation saved under a name, or without a name all of them. */
export async function forgetSaved(store, name) {
  const files = name === undefined ? (await store.list()).filter((file) => FILE.test(file)) : [await fileOf(name)];
  for (const file of files) await removeFile(store, file, PATIENCE_MS);
}

/**
 * Makes room for a file of this size: removes the least recently used files until all together have at most `most`
 * bytes. Files in use stay.
 */
export async function makeRoom(store, name, bytes, most) {
  const own = await fileOf(name);
  const others = (await describeAll(store)).filter(({ file }) => file !== own).sort((a, b) => a.date - b.date);
  let sum = others.reduce((total, other) => total + other.bytes, bytes);
  for (const { file, bytes: freed } of others) {
    if (sum <= most) return;
    sum -= await removeFile(store, file, 0).then(() => freed, () => 0);
  }
}

/** The number of records that fit into so many bytes. */
export const mostRecords = (bytes, record) => Math.max(0, Math.floor((bytes - HEADER - DATE) / record));

/** Bytes of a file with this number of records. */
export const sizeOf = (records, record) => HEADER + records * record + DATE;

// SPDX-License-Identifier: MIT
// Saved conversations as a store's files (MODEL.md has the layout): under which name one lies, whose it is and how much
// of it there is, reading and cutting it, adding to it, forgetting it. Whether a header or a record is right the engine
// says (src/engine/saved.c); behind the last record stands when the file was used last, so that the oldest can make
// room. A crash leaves an end that is no record: whoever writes next cuts it off.

import { alone, storageError } from './guard.js';
import { keyOf, readAll, writeAll } from './store.js';

const HEADER = 4096;
const HEAD = 512;           // of a record: what tells whose page it is
const DATE = 8;             // u64, milliseconds since 1970
const FILE = /^kv-[0-9a-f]{32}$/;

/** Tokens of a page. */
export const PAGE = 32;

/** How long whoever wants a file for himself waits for another one. */
const PATIENCE_MS = 3000;

const SENTENCES = {
  'storage/quota': 'There is not enough space to keep the conversation; it goes on without.',
  'storage/unavailable': 'Conversations cannot be kept here, and go on without.',
  'storage/corrupt': 'What was kept of the conversation is damaged, or of another model, and is read anew.',
};

/** What is told of an error. */
export const sentenceOf = (code) => SENTENCES[code] ?? 'The conversation is not kept.';

const fileOf = async (name) => `kv-${await keyOf(name)}`;

/**
 * Does something with the file of a name that nobody else does anything with; else `storage/busy`.
 * @param {object} store guarded
 */
export async function holding(store, name, work, patienceMs = PATIENCE_MS) {
  return alone(
    store,
    await fileOf(name),
    { patienceMs, busy: storageError('storage/busy', 'a conversation of this name is being kept') },
    work,
  );
}

export class SavedFile {
  #file;
  #record;
  #size;

  /** @param {number} record bytes of one @param {{write?: boolean}} [options] write: it is made if it is not there */
  static async open(store, name, record, { write = false } = {}) {
    const kept = new SavedFile();
    kept.#file = await store.open(await fileOf(name), { write });
    kept.#record = record;
    kept.#size = await kept.#file?.size();
    return kept.#file && kept;
  }

  /** Whole records, if the header is that of the model at hand. */
  get records() { return Math.max(0, Math.floor((this.#size - HEADER) / this.#record)); }

  /** Whether something is behind them that belongs to nothing. */
  get isTorn() { return ![0, HEADER, this.#at(this.records) + DATE].includes(this.#size); }

  #at(index) { return HEADER + index * this.#record; }

  /** Whether it begins with these bytes. */
  async beginsWith(header) {
    const own = new Uint8Array(HEADER);
    return await readAll(this.#file, 0, own) === HEADER && own.every((byte, i) => byte === header[i]);
  }

  /** Bytes of a record that the engine needs: all, or its head. */
  lengthOf(isWanted) { return isWanted ? this.#record : HEAD; }

  /**
   * Fills `target` from the beginning of a record on.
   * @returns {Promise<Uint8Array | null>} it; null: the file ends before
   */
  async read(index, target) {
    return await readAll(this.#file, this.#at(index), target) === target.length ? target : null;
  }

  async begin(header) {
    await this.#file.truncate(0);
    this.#size = HEADER;
    await writeAll(this.#file, 0, header);
  }

  /** Only the first so many records stay. */
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
   * It is used now, and has what was added; whatever else there is at its end goes. Nothing is flushed, which would
   * hold up the worker for as long as hundreds of megabytes take: what a power cut leaves is hashed before it is
   * believed.
   */
  async finish() {
    await this.cut(this.records);
    const date = new DataView(new ArrayBuffer(DATE));
    date.setBigUint64(0, BigInt(Date.now()), true);
    await writeAll(this.#file, this.#at(this.records), new Uint8Array(date.buffer));
  }

  close() { return this.#file.close(); }
}

/** Records that a conversation's state takes behind its pages, by the header. @param {Uint8Array} header */
export const statesIn = ({ buffer }) => new DataView(buffer).getUint32(52, true);

/** What a header says: whose file it is and how long its records are; null: nothing that makes sense. */
async function readHeader(bytes, file) {
  const view = new DataView(bytes.buffer);
  const name = new TextDecoder().decode(bytes.subarray(74, 74 + view.getUint16(72, true)));
  const record = Number(view.getBigUint64(32, true));
  return record > 0 && name && await fileOf(name) === file ? { name, record, states: statesIn(bytes) } : null;
}

/** One file: {file, name, tokens, bytes, date}; the name is '' where it does not say. */
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
  const busy = storageError('storage/busy', 'the conversation is being kept');
  return alone(store, file, { patienceMs, busy }, () => store.remove(file));
};

/** Whether anything is; nothing where the store does not say. @param {object} store guarded */
export const savesAny = async (store) => (await store.list().catch(() => [])).some((file) => FILE.test(file));

/** What is kept, used last first. @param {object} store guarded */
export async function listSaved(store) {
  const all = (await describeAll(store)).filter(({ name }) => name);
  return all.sort((a, b) => b.date - a.date).map(({ name, tokens, bytes, date }) => ({ name, tokens, bytes, date }));
}

/** Removes a file, for whoever holds it. */
export const removeSaved = async (store, name) => store.remove(await fileOf(name));

/** Forgets what is kept under a name, or, without one, all. */
export async function forgetSaved(store, name) {
  const files = name === undefined ? (await store.list()).filter((file) => FILE.test(file)) : [await fileOf(name)];
  for (const file of files) await removeFile(store, file, PATIENCE_MS);
}

/**
 * Makes room for a file of so many bytes: those used longest ago go while all together have more than `most`. Files in
 * use stay.
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

/** The most records that fit. */
export const mostRecords = (bytes, record) => Math.max(0, Math.floor((bytes - HEADER - DATE) / record));

/** Bytes of a file of so many records. */
export const sizeOf = (records, record) => HEADER + records * record + DATE;

// SPDX-License-Identifier: MIT
// The vectors of passages, on this device: a row for each text and model, with as many vectors as are made so far. A
// row lies among the messages of its conversation (tables.js), under a number, which no message has as its id; so
// whatever deletes the conversation deletes its vectors in the same transaction, in every tab. A conversation gets its
// id with its first message: until some stored message has the text, the row waits here. Vectors are 8-bit codes: only
// their directions count, so a vector needs no scale.
import { openDB } from 'idb';

/** Most rows that are kept in memory, which is all where the browser stores nothing. */
const MOST = 32;

/** @typedef {{key: number, text: string, dim: number, done: number, codes: Int8Array}} Row codes: [passages, dim] */

/** The key of some passages and a model: 48 bits of a hash. */
export async function keyOf(model, passages) {
  const bytes = new TextEncoder().encode([model, ...passages.map(({ text }) => text)].join('\0'));
  const words = new DataView(await crypto.subtle.digest('SHA-256', bytes));
  return words.getUint32(0) * 2 ** 16 + words.getUint16(4);
}

/** Puts a vector into a row. */
export function put({ dim, codes }, i, vector) {
  const most = vector.reduce((best, value) => Math.max(best, Math.abs(value)), 0) || 1;
  for (let j = 0; j < dim; j++) codes[i * dim + j] = Math.round((127 * vector[j]) / most);
}

/** The cosine of a vector of a row and another one of length 1; 0 if the row has only zeros there. */
export function likeness({ dim, codes }, i, vector) {
  let dot = 0;
  let sum = 0;
  for (let j = 0; j < dim; j++) {
    const code = codes[i * dim + j];
    dot += code * vector[j];
    sum += code * code;
  }
  return sum ? dot / Math.sqrt(sum) : 0;
}

/** The page's database as it is; none is made, and a newer version of the page may change it. */
const AS_IT_IS = {
  upgrade: (db, from, to, transaction) => transaction.abort(),
  blocking: (from, to, { target }) => target.close(),
};

export class Vectors {
  #rows = new Map();      // key -> row
  #waiting = new Set();   // rows whose text no stored conversation has yet
  #db = openDB('quern', undefined, AS_IT_IS).catch(() => null);

  constructor() {
    const changes = globalThis.BroadcastChannel && new BroadcastChannel('quern:conversations');
    changes?.addEventListener('message', ({ data }) => {
      if (this.#waiting.size) this.#settle(data).catch(() => {});
    });
  }

  /** The row of a conversation under a key, or null. @returns {Promise<?Row>} */
  async read(conversation, key) {
    const here = this.#rows.get(key);
    if (here) return here;
    const found = await (await this.#db)?.get('messages', [conversation, key]).catch(() => null);
    const isRow = found?.codes instanceof Int8Array && found.dim > 0 && found.done * found.dim <= found.codes.length;
    if (isRow) this.#remember(found);
    return isRow ? found : null;
  }

  /** Keeps a row with its conversation ('': one that has no id yet), if there is room. @param {Row} row */
  async keep(conversation, row) {
    this.#remember(row);
    if (conversation && await this.#write(conversation, row).catch(() => false)) return;
    this.#waiting.add(row);
  }

  #remember(row) {
    this.#rows.delete(row.key);
    this.#rows.set(row.key, row);
    if (this.#rows.size > MOST) this.#rows.delete(this.#rows.keys().next().value);
  }

  /** @returns {Promise<boolean>} false: there is no such conversation, or it is deleted */
  async #write(conversation, { text, ...row }) {
    const db = await this.#db;
    if (!db) return false;
    const transaction = db.transaction(['conversations', 'messages'], 'readwrite', { durability: 'relaxed' });
    const entry = await transaction.objectStore('conversations').get(conversation);
    const isThere = Boolean(entry && !entry.deleted);
    if (isThere) transaction.objectStore('messages').put({ ...row, conversation, id: row.key });
    await transaction.done;
    return isThere;
  }

  /** Writes the rows whose texts a conversation has now. */
  async #settle(conversation) {
    const db = await this.#db;
    if (!db || typeof conversation !== 'string' || !conversation) return;
    const messages = await db.getAll('messages', IDBKeyRange.bound([conversation, ''], [conversation, []]));
    const texts = new Set(messages.flatMap((message) => (message.texts ?? []).map(({ text }) => text)));
    for (const row of [...this.#waiting]) {
      if (texts.has(row.text) && await this.#write(conversation, row)) this.#waiting.delete(row);
    }
  }
}

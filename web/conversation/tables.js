// SPDX-License-Identifier: MIT
// Three tables: conversations (by id), messages (by conversation and id), and texts for searching (by id). They are in
// IndexedDB, or in memory if the browser gives this page none. Each change of a conversation is one transaction. Among
// the messages, under numbers in place of ids, are the vectors of documents (late/vectors.js).
import { openDB } from 'idb';
import { fromPortable, toPortable } from './portable.js';

const NAME = 'quern';
const TABLES = ['conversations', 'messages', 'texts'];

class StoredTables {
  isSaved = true;
  #db;

  constructor(db) {
    this.#db = db;
  }

  /** @returns {Promise<Map<string, object>>} by id */
  async entries() { return new Map((await this.#db.getAll('conversations')).map((entry) => [entry?.id, entry])); }

  entry(id) { return this.#db.get('conversations', id); }

  async messages(id) {
    return (await this.#db.getAll('messages', IDBKeyRange.bound([id, ''], [id, []]))).map(fromPortable);
  }

  text(id) { return this.#db.get('texts', id); }

  /** @returns {Promise<Map<string, string>>} by id */
  async texts() {
    const { store } = this.#db.transaction('texts');
    const [ids, texts] = await Promise.all([store.getAllKeys(), store.getAll()]);
    return new Map(ids.map((id, i) => [id, texts[i]]));
  }

  /**
   * @param {string} id
   * @param {(entry?: object, text: string) => ?object} change returns what to write (entry, messages, text) and the ids
   *   of messages to delete (gone); an entry of null deletes everything, and returning nothing changes nothing
   */
  async change(id, change) {
    let wanted;
    try {
      await this.#put(id, (...now) => { wanted = change(...now); return wanted; });
    } catch (error) {
      // WebKit stores no files in a private window, but it stores them as text.
      if (!wanted?.messages?.some(({ media }) => media)) throw error;
      const messages = await Promise.all(wanted.messages.map(toPortable));
      await this.#put(id, (...now) => ({ ...change(...now), messages }));
    }
    return wanted?.entry;
  }

  async #put(id, change) {
    const transaction = this.#db.transaction(TABLES, 'readwrite', { durability: 'relaxed' });
    const [entries, messages, texts] = TABLES.map((name) => transaction.objectStore(name));
    const wanted = change(await entries.get(id), (await texts.get(id)) ?? '');
    if (wanted?.entry === null) {
      entries.delete(id);
      texts.delete(id);
      messages.delete(IDBKeyRange.bound([id], [id, []]));
      messages.delete(['', id]);      // images of an unsent message
    } else if (wanted) {
      // Messages first: WebKit blocks the database for ever if it refuses a file after other writes.
      for (const message of wanted.messages ?? []) messages.put({ ...message, conversation: id });
      for (const one of wanted.gone ?? []) messages.delete([id, one]);
      if (wanted.entry) entries.put(wanted.entry);
      if (wanted.text !== undefined) texts.put(wanted.text, id);
    }
    await transaction.done;
  }
}

class MemoryTables {
  isSaved = false;
  #entries = new Map();
  #messages = new Map();    // id -> Map of messages
  #texts = new Map();

  async entries() { return new Map(this.#entries); }
  async entry(id) { return this.#entries.get(id); }
  async messages(id) { return [...this.#messages.get(id)?.values() ?? []]; }
  async text(id) { return this.#texts.get(id); }
  async texts() { return new Map(this.#texts); }

  async change(id, change) {
    const wanted = change(this.#entries.get(id), this.#texts.get(id) ?? '');
    if (wanted?.entry === null) {
      for (const table of [this.#entries, this.#messages, this.#texts]) table.delete(id);
    } else if (wanted) {
      if (wanted.entry) this.#entries.set(id, wanted.entry);
      if (wanted.text !== undefined) this.#texts.set(id, wanted.text);
      const messages = this.#messages.get(id) ?? new Map();
      for (const message of wanted.messages ?? []) messages.set(message.id, message);
      for (const one of wanted.gone ?? []) messages.delete(one);
      this.#messages.set(id, messages);
    }
    return wanted?.entry;
  }
}

/** Milliseconds to wait for the database, since some browsers sometimes never answer. */
const PATIENCE_MS = 5000;

/** @returns {Promise<StoredTables | MemoryTables>} */
export async function openTables() {
  try {
    const upgrade = (db) => {
      db.createObjectStore('conversations', { keyPath: 'id' });
      db.createObjectStore('messages', { keyPath: ['conversation', 'id'] });
      db.createObjectStore('texts');
    };
    const late = new Promise((_, fail) => { setTimeout(fail, PATIENCE_MS); });
    const db = await Promise.race([openDB(NAME, 1, { upgrade, blocking: () => db.close() }), late]);
    return new StoredTables(db);
  } catch {
    return new MemoryTables();
  }
}

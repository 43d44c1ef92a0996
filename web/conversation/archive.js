// SPDX-License-Identifier: MIT
// The store of all conversations: reads, writes and searches them, and tells every tab of this page about changes. A
// reply is written here repeatedly while it grows. A tab that writes in a conversation holds a lock of its own name for
// that conversation, so no other tab writes there.
import { models } from 'quern';
import { codeOf } from '../shell/failure.js';
import { checkEntry, checkMessage, checkText, folded, savedId, savedName, titleOf } from './record.js';
import { writeDraft } from './drafts.js';
import { Mirror } from './mirror.js';
import { fromPortable, toPortable } from './portable.js';
import { openTables } from './tables.js';
import { newId, newestLeaf } from './tree.js';
import { read } from '../shell/storage.js';
import { say } from '../shell/words.js';

/** Key under which earlier versions kept their only conversation. */
const OLD = 'quern:chat';

/** Milliseconds during which a deleted conversation can be restored. */
export const UNDO_MS = 10_000;

/** An id that no conversation has. It holds the images and texts of unsent messages. */
const NONE = '';
const NEW = 'new';

const ignore = () => {};

/** The text in which a search looks. */
const textOf = ({ title }, messages) => [title, ...messages.map(({ content }) => content)].map(folded).join('\n');

const lockOf = (id) => `quern:conversation:${id}`;

export class Archive {
  #tables;
  #forget;
  #channel = globalThis.BroadcastChannel ? new BroadcastChannel('quern:conversations') : null;
  #listeners = new Set();
  #entries = new Mirror(() => this.#tables.entries(), (id) => this.#tables.entry(id));
  #texts = new Mirror(() => this.#tables.texts(), (id) => this.#tables.text(id));

  /**
   * @param {(name: string) => Promise<void>} forget deletes what models have stored under a name
   * @returns {Promise<Archive>}
   */
  static async open(forget) {
    const archive = new Archive();
    archive.#forget = forget;
    archive.#tables = await openTables();
    archive.#channel?.addEventListener('message', ({ data }) => { if (checkText(data)) archive.#tell(data, true); });
    await archive.#takeOver().catch(ignore);
    await archive.#sweep().catch(ignore);
    setTimeout(() => archive.#forgetStrays().catch(ignore), UNDO_MS);
    return archive;
  }

  /** Whether the conversations outlive this page. */
  get isSaved() { return this.#tables.isSaved; }

  /**
   * @param {(id: string, elsewhere: boolean) => void} listener called after a conversation has changed, here or in
   * another tab
   */
  watch(listener) { this.#listeners.add(listener); }

  /** @returns {Promise<object[]>} entries: pinned ones first, then those with the latest questions */
  async list() {
    const entries = [...(await this.#entries.read()).values()]
      .map(checkEntry)
      .filter((entry) => entry && !entry.deleted);
    return entries.sort((a, b) => b.pinned - a.pinned || b.changed - a.changed);
  }

  /** @returns {Promise<boolean>} whether a conversation was deleted; false also if it was never stored */
  async isDeleted(id) { return checkEntry(await this.#tables.entry(id))?.deleted > 0; }

  /**
   * @returns {Promise<{entry: object, messages: object[], elsewhere: boolean} | null>} elsewhere: another tab writes in
   *   it
   */
  async read(id) {
    const entry = checkEntry(await this.#tables.entry(id));
    if (!entry || entry.deleted) return null;
    const messages = (await this.#tables.messages(id)).map(checkMessage).filter(Boolean);
    return { entry, messages, elsewhere: messages.some(({ writing }) => writing) && await this.#isTaken(id) };
  }

  /** @returns {Promise<Set<string>>} ids of conversations that contain all words, in any place */
  async search(words) {
    const wanted = folded(words).split(/\s+/).filter(Boolean);
    const texts = await this.#texts.read();
    return new Set(
      [...texts].filter(([, text]) => wanted.every((word) => checkText(text)?.includes(word))).map(([id]) => id),
    );
  }

  /**
   * Saves messages, new or changed, and fields of the entry. Finished messages can be found by a search. A deleted
   * conversation stays deleted.
   * @returns {Promise<object>} the entry
   */
  put(id, messages, fields = {}) {
    return this.#change(id, (old, text) => {
      const now = Date.now();
      const entry = checkEntry(old) ?? {
        ...checkEntry({ id }),
        created: now,
        changed: now,
        title: titleOf(messages[0]),
      };
      const said = messages
        .filter(({ writing }) => !writing)
        .map(({ content }) => `\n${folded(content)}`)
        .join('');
      const head = text || folded(entry.title);
      return {
        entry: { ...entry, ...fields },
        messages: messages.map(checkMessage),
        ...(said && { text: head + said }),
      };
    });
  }

  /** Deletes messages of a conversation, which a search then no longer finds. @param {{id: string}[]} gone */
  async cut(id, gone) {
    const ids = gone.map((message) => message.id);
    const left = (await this.#tables.messages(id)).filter((message) => !ids.includes(message.id));
    return this.#change(id, (old) => old && { entry: old, gone: ids, text: textOf(checkEntry(old), left) });
  }

  /** Changes fields of an existing entry. */
  patch(id, fields) {
    return this.#change(id, (old, text) => {
      const entry = checkEntry(old);
      if (!entry) return null;
      const named = fields.title !== undefined && fields.title !== entry.title;
      return {
        entry: { ...entry, ...fields, ...(named && { named }) },
        ...(named && { text: `${folded(fields.title)}\n${text}` }),
      };
    });
  }

  /** Gives a conversation the title that a model has made, unless the visitor has named it. */
  entitle(id, title) {
    return this.#change(id, (old, text) => {
      const entry = checkEntry(old);
      if (!entry || entry.named || entry.deleted) return null;
      return { entry: { ...entry, title, titled: true }, text: `${folded(title)}\n${text}` };
    });
  }

  /** Hides conversations. They are removed after UNDO_MS, or when a page is opened after that. */
  remove(...ids) {
    setTimeout(() => this.#sweep().catch(ignore), UNDO_MS + 100);
    return this.#mark(ids, Date.now());
  }

  restore(...ids) { return this.#mark(ids, 0); }

  #mark(ids, deleted) { return Promise.all(ids.map((id) => this.patch(id, { deleted }))); }

  /**
   * The images and texts of the next message of a conversation ('': of a new one). They are stored as a message of the
   * conversation NONE.
   */
  async unsent(id) {
    const found = (await this.#tables.messages(NONE)).find((one) => one.id === (id || NEW));
    const { media, texts } = checkMessage(found) ?? {};
    return { media, texts };
  }

  keepUnsent(id, parts) {
    return this.#tables.change(NONE, () => ({ messages: [{ id: id || NEW, role: 'user', content: '', ...parts }] }));
  }

  /**
   * Exports all conversations as JSON for a file. Each has a string of its own, since one string for all can exceed a
   * browser's limit.
   */
  async export() {
    const texts = [];
    for (const { id } of await this.list()) {
      const found = await this.read(id);
      if (!found) continue;     // deleted meanwhile
      const messages = await Promise.all(found.messages.map(toPortable));
      texts.push(texts.length ? ',' : '', JSON.stringify({ ...found.entry, messages }));
    }
    return new Blob(['{"quern":1,"conversations":[', ...texts, ']}']);
  }

  /** Imports conversations that are not here yet. @param {any[]} found in a file @returns {Promise<number>} how many */
  async import(found) {
    const known = await this.#entries.read();
    let added = 0;
    for (const value of found) {
      const entry = checkEntry(value);
      const messages = (Array.isArray(value?.messages) ? value.messages : [])
        .map(fromPortable)
        .map(checkMessage)
        .filter(Boolean);
      if (!entry || known.has(entry.id) || !messages.length) continue;
      await this.#change(entry.id, () => ({
        entry: { ...entry, deleted: 0, leaf: entry.leaf || newestLeaf(messages) },
        messages,
        text: textOf(entry, messages),
      }));
      added++;
    }
    return added;
  }

  /**
   * Runs work while no other tab writes in the conversation. Without locks, or if the browser refuses them, it runs in
   * any case.
   * @returns {Promise<boolean>} false: another tab writes there, and the work was not run
   */
  async alone(id, work) {
    let isBegun = false;
    const begin = async (lock) => {
      isBegun = true;
      return lock !== null && work().then(() => true);
    };
    try {
      return await navigator.locks.request(lockOf(id), { ifAvailable: true }, begin);
    } catch (error) {
      if (isBegun) throw error;
      return begin();
    }
  }

  /** Resolves when nobody writes in a conversation any more, even if a tab has died. */
  async freed(id) { await navigator.locks?.request(lockOf(id), { mode: 'shared' }, ignore); }

  async #isTaken(id) {
    const { held = [] } = await navigator.locks?.query().catch(() => ({})) ?? {};
    return held.some(({ name }) => name === lockOf(id));
  }

  async #change(id, change) {
    const entry = await this.#tables.change(id, (old, text) => change(old, checkText(text) ?? ''));
    this.#tell(id, false);
    this.#channel?.postMessage(id);
    return entry;
  }

  #tell(id, elsewhere) {
    this.#entries.touch(id);
    this.#texts.touch(id);
    for (const listener of this.#listeners) listener(id, elsewhere);
  }

  async #sweep() {
    const gone = [...(await this.#entries.read()).values()]
      .map(checkEntry)
      .filter((entry) => entry?.deleted && entry.deleted < Date.now() - UNDO_MS);
    for (const { id } of gone) {
      if (!await this.#forgotten(savedName(id))) continue;
      const left = await this.#change(id, (entry) => (entry?.deleted ? { entry: null } : null));
      if (left === null) writeDraft(id, '');
    }
  }

  /** @returns {Promise<boolean>} false: another tab is storing it just now */
  async #forgotten(name) {
    try {
      await this.#forget(name);
      return true;
    } catch (error) {
      return codeOf(error) !== 'storage/busy';
    }
  }

  /** Deletes what a reply in another tab has stored for a conversation that was deleted meanwhile. */
  async #forgetStrays() {
    if (!this.isSaved) return;
    for (const { name } of await models.saved()) {
      const id = savedId(name);
      if (id && !await this.#tables.entry(id)) await this.#forgotten(name);
    }
  }

  /** Takes over the only conversation of earlier versions. */
  async #takeOver() {
    const old = read(OLD);
    if (old?.version === 1 && Array.isArray(old.messages) && this.isSaved) {
      let parent = '';
      const messages = old.messages.map((message) => checkMessage({ ...message, id: newId() })).filter(Boolean);
      const from = messages.findIndex(({ role }) => role === 'user');
      const taken = from < 0 ? [] : messages.slice(from).map((message) => {
        const placed = { ...message, parent };
        parent = message.id;
        return placed;
      });
      if (taken.length) await this.put(newId(), taken, { leaf: parent });
    }
    localStorage.removeItem(OLD);
  }
}

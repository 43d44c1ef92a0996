// SPDX-License-Identifier: MIT
// The conversation that this tab shows: its messages, which of them are on the way to the leaf, and where the model begins to read. Everything
// changes here first and is stored behind; the log, the list and the field follow what this says.
import { read, write } from '../shell/storage.js';
import { newId, newestBelow, newestLeaf, pathTo, siblingsOf } from './tree.js';

/** Which conversation a tab shows outlives its reload. */
const OPEN = 'quern:open';
const remember = (id) => write(OPEN, id, 'sessionStorage');

export class Talk {
  id = '';            // of the conversation; a new one gets it with its first message
  entry = null;
  messages = [];
  path = [];          // those that are shown
  first = '';         // id of the one from which on the model reads; '' for all
  isHeld = false;     // while this tab writes: what others say is not listened to then
  #archive;
  #events;
  #writes = Promise.resolve();
  #pending = 0;

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {{onChange: () => void, onUnsaved: () => void}} events
   */
  constructor(archive, events) {
    this.#archive = archive;
    this.#events = events;
    archive.watch((id, elsewhere) => { if (id === this.id && (elsewhere || !this.#pending)) this.#reread(); });
  }

  get isEmpty() { return this.path.length === 0; }
  get title() { return this.entry?.title ?? this.path[0]?.content ?? ''; }
  get leaf() { return this.path.findLast(({ failed }) => !failed)?.id ?? ''; }

  /** The messages that the model reads. */
  get read() {
    const from = this.path.findIndex(({ id }) => id === this.first);
    return this.path.slice(Math.max(0, from));
  }

  siblings(message) { return siblingsOf(this.messages, message); }

  /** What this tab has shown before, or else what changed last. */
  async resume() {
    const id = read(OPEN, 'sessionStorage') ?? (await this.#archive.list()).sort((a, b) => b.changed - a.changed)[0]?.id;
    await this.open(id ?? '');
  }

  /** Shows a stored conversation, or a new one. */
  async open(id) {
    await this.#writes;
    const found = id ? await this.#archive.read(id).catch(() => null) : null;
    this.id = found ? id : '';
    remember(this.id);
    this.#set(found?.entry ?? null, found?.messages ?? []);
  }

  /** A new conversation gets its id. @returns {string} */
  begin() {
    this.id ||= newId();
    remember(this.id);
    return this.id;
  }

  /** Adds a question behind another message ('' for the first) and shows it. @returns {object} it, with its id */
  ask(content, parent = this.leaf) {
    const question = this.#add({ role: 'user', content, parent });
    this.#store([question], { leaf: question.id });
    this.#events.onChange();
    return question;
  }

  /** Adds the reply to a question. It is stored once there is something of it, and shown by who writes it. */
  reply(parent) {
    return this.#add({ role: 'assistant', content: '', thinking: '', thoughtMs: 0, note: '', model: '', speed: 0, writing: true, parent });
  }

  /** A message as it is now. */
  update(message) {
    this.messages = this.messages.map((one) => (one.id === message.id ? message : one));
    this.path = this.path.map((one) => (one.id === message.id ? message : one));
    this.#store([message], { leaf: this.leaf });
  }

  /** Shows the branch that a message is on. */
  choose(message) {
    const leaf = newestBelow(this.messages, message.id);
    this.#store([], { leaf });
    this.#show(leaf);
  }

  /** The model no longer reads the oldest turn that it read. @returns {boolean} false when only the last question is left */
  leaveOut() {
    const next = this.read.find(({ role }, i) => i > 0 && role === 'user');
    if (next) this.readFrom(next.id);
    return Boolean(next);
  }

  /** The model reads from this message on; '' for all. */
  readFrom(first) {
    this.first = first;
    this.#store([], { first });
    this.#events.onChange();
  }

  /** A reply of which nothing came is no part of the conversation; it is shown until something else is. */
  takeBack(message) {
    this.messages = this.messages.filter(({ id }) => id !== message.id);
    this.path = [...pathTo(this.messages, message.parent), { ...message, failed: true }];
  }

  /** Everything of this conversation lies in the store. */
  stored() { return this.#writes; }

  #add(message) {
    const added = { ...message, id: newId() };
    this.messages = [...this.messages, added];
    this.path = pathTo(this.messages, added.id);
    return added;
  }

  #store(messages, fields) {
    const { id } = this;
    this.#pending++;
    const write = () => (messages.length ? this.#archive.put(id, messages, fields) : this.#archive.patch(id, fields));
    this.#writes = this.#writes.then(write).then((entry) => {
      if (entry && this.id === id) this.entry = entry;
    }, () => this.#events.onUnsaved()).finally(() => { this.#pending--; });
  }

  async #reread() {
    const { id } = this;
    await this.#writes;
    const found = await this.#archive.read(id).catch(() => null);
    if (this.id !== id || this.isHeld || this.#pending || this.path.at(-1)?.failed) return;
    if (found) this.#set(found.entry, found.messages);
    else await this.open('');
  }

  #set(entry, messages) {
    this.entry = entry;
    this.first = entry?.first ?? '';
    this.messages = messages;
    this.#show(entry?.leaf);
  }

  #show(leaf) {
    const path = pathTo(this.messages, leaf);
    this.path = path.length ? path : pathTo(this.messages, newestLeaf(this.messages));
    this.#events.onChange();
  }
}

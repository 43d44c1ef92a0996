// SPDX-License-Identifier: MIT
// One conversation: its messages, which of them are on the way to the leaf, where the model begins to read, and the
// reply that this tab writes in it. Everything changes here first and is stored behind; the log, the list and the field
// follow what this says.
import { familiesOf, newId, newestBelow, newestLeaf, pathTo } from './tree.js';

/** How often a growing reply is stored, in ms: what a tab that dies loses of it. */
const STORE_MS = 400;

const isNothing = ({ error, content, thinking, steps }) => error && !content && !thinking && !steps;

export class Talk {
  id = '';            // a new conversation gets it with its first message
  entry = null;
  messages = [];
  path = [];          // those that are shown
  first = '';         // id of the one from which on the model read last; '' for all
  run = null;         // the reply that this tab writes; what other tabs say is not listened to then
  elsewhere = false;  // another tab writes in it
  held = null;        // until it settles this tab is about to write, or has the conversation for itself
  isUnsaved = false;  // the store has not taken what came last: only this tab has it
  #families = {};     // of which messages, and all of them
  #archive;
  #events;
  #writes = Promise.resolve();
  #unstored = new Map();    // id -> a message that the store has not taken yet
  #pending = 0;
  #stored = 0;        // when a growing reply was stored last
  #later = null;
  #waits = false;     // until the other tab has ended

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {{onChange: (talk: Talk) => void, onUnsaved: () => void}} events the second once, until the store takes all
   *   of it again
   * @param {?{entry: object, messages: object[]}} found as it is stored; null for a new one
   */
  constructor(archive, events, found = null) {
    this.#archive = archive;
    this.#events = events;
    if (found) this.#set(found);
  }

  get isEmpty() { return this.path.length === 0; }
  get title() { return this.entry?.title ?? this.path[0]?.content ?? ''; }
  get leaf() { return this.path.findLast((message) => !isNothing(message))?.id ?? ''; }

  /** Whether a reply has failed, which only this tab knows. */
  get hasFailed() { return Boolean(this.path.at(-1)?.error); }

  /** Whether this tab knows more of it than the store does. */
  get isLive() { return Boolean(this.run || this.held || this.hasFailed || this.isUnsaved); }

  /** All messages that follow the same one as this, it included, oldest first. */
  siblings({ parent }) {
    if (this.#families.of !== this.messages) this.#families = { of: this.messages, all: familiesOf(this.messages) };
    return this.#families.all.get(parent) ?? [];
  }

  /** A new conversation gets its id. */
  begin() { this.id ||= newId(); }

  /** Adds a question behind another message ('' for the first) and shows it. @returns {object} it, with its id */
  ask({ content, media = [] }, parent = this.leaf) {
    const question = this.#add({ role: 'user', content, parent, ...(media.length && { media }) });
    this.#store([question], { leaf: question.id, deleted: 0 });
    this.#events.onChange(this);
    return question;
  }

  /** Adds the reply to a question. It is stored once there is something of it, and shown by who writes it. */
  reply(parent) {
    return this.#add({
      role: 'assistant',
      content: '',
      thinking: '',
      thoughtMs: 0,
      note: '',
      model: '',
      speed: 0,
      writing: true,
      parent,
    });
  }

  /** Something is asked here: it comes to the top of the list, and stays there while others grow. */
  touch() {
    this.#store([], { changed: Date.now() });
  }

  /** Stores a message as it is now. */
  put(message) {
    clearTimeout(this.#later);
    this.#stored = performance.now();
    this.#store([{ ...message }], { leaf: this.leaf });
  }

  /**
   * Something was added to a message: that is stored soon. Where timers sleep, in a hidden tab, what is added next sees
   * to it.
   */
  grown(message) {
    clearTimeout(this.#later);
    const due = this.#pending ? STORE_MS : this.#stored + STORE_MS - performance.now();
    if (due > 0) this.#later = setTimeout(() => this.grown(message), due);
    else this.put(message);
  }

  /** Shows the branch that a message is on. */
  choose(message) {
    const leaf = newestBelow(this.messages, message.id);
    this.#store([], { leaf });
    this.#show(leaf);
    this.#events.onChange(this);
  }

  /** The model has read from this message on, '' for all: the library said so. It is shown, after a reload too. */
  readFrom(first) {
    if (first === this.first) return;
    this.first = first;
    this.#store([], { first });
    this.#events.onChange(this);
  }

  /**
   * A reply has failed. One of which nothing came is no part of the conversation; it is shown until something else is.
   */
  fail(message) {
    if (!isNothing(message)) return this.put(message);
    clearTimeout(this.#later);
    this.messages = this.messages.filter(({ id }) => id !== message.id);
    return undefined;
  }

  /** Ends the running reply, keeping what is written. Resolves when another one may be asked for. */
  async stop() {
    const { run, held } = this;
    await run?.stop();
    await held?.catch(() => {});    // who asked for it hears how it has failed
  }

  /** Everything of this conversation lies in the store. */
  stored() { return this.#writes; }

  get isStoring() { return this.#pending > 0; }

  /** It has changed in the store, by somebody else. */
  async follow() {
    if (this.run) return;
    await this.#writes;
    const found = await this.#archive.read(this.id).catch(() => null);
    if (!found || this.run || this.#pending || this.hasFailed || this.isUnsaved) return;
    this.#set(found);
    this.#events.onChange(this);
  }

  #add(message) {
    for (const one of this.path) delete one.error;    // what follows makes it past
    const added = { ...message, id: newId() };
    this.messages = [...this.messages, added];
    this.path = pathTo(this.messages, added.id);
    return added;
  }

  #store(messages, fields) {
    this.#pending++;
    this.#writes = this.#writes.then(() => this.#write(messages, fields)).finally(() => { this.#pending--; });
  }

  /** What was not taken goes along with what comes next, which would have no beginning without it. */
  async #write(messages, fields) {
    for (const message of messages) this.#unstored.set(message.id, message);
    const all = [...this.#unstored.values()];
    const now = this.isUnsaved ? { leaf: this.leaf, first: this.first, ...fields } : fields;
    try {
      this.entry =
        (await (all.length ? this.#archive.put(this.id, all, now) : this.#archive.patch(this.id, now))) ?? this.entry;
      this.#unstored.clear();
      this.isUnsaved = false;
    } catch {
      if (!this.isUnsaved) this.#events.onUnsaved();
      this.isUnsaved = true;
    }
  }

  #set({ entry, messages, elsewhere }) {
    this.id = entry.id;
    this.elsewhere = elsewhere;
    if (elsewhere) this.#awaitOther();
    this.entry = entry;
    this.first = entry.first;
    this.messages = messages;
    this.#show(entry.leaf);
  }

  /** A tab may end without a word. */
  async #awaitOther() {
    if (this.#waits) return;
    this.#waits = true;
    await this.#archive.freed(this.id).catch(() => {});
    this.#waits = false;
    this.follow();
  }

  #show(leaf) {
    const path = pathTo(this.messages, leaf);
    this.path = path.length ? path : pathTo(this.messages, newestLeaf(this.messages));
  }
}

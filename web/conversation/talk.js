// SPDX-License-Identifier: MIT
// One conversation: its messages, the path that is shown, the message at which the model begins to read, and the reply
// that this tab writes in it. Every change happens here first and is stored afterwards. The log, the list and the field
// show this state.
import { key } from '../shell/words.js';
import { titleOf } from './record.js';
import { allBelow, familiesOf, newId, newestBelow, newestLeaf, pathTo } from './tree.js';

/** Milliseconds between two writes of a growing reply: the most that is lost if the tab dies. */
const STORE_MS = 400;

const isNothing = ({ error, content, thinking, steps }) => error && !content && !thinking && !steps;

export class Talk {
  id = '';            // a new conversation gets one with its first message
  entry = null;
  messages = [];
  path = [];          // the messages that are shown
  first = '';         // id of the first message that the model read last; '': it read all
  preset = null;      // settings of its replies (shell/settings.js); null: those of new conversations
  run = null;         // the reply that this tab writes; changes by other tabs are ignored meanwhile
  elsewhere = false;  // another tab writes in it
  held = null;        // promise: until it settles, this tab writes here or is about to
  queue = [];         // questions that wait for the end of the reply
  isUnsaved = false;  // the store has refused the last change, which only this tab has
  #families = {};     // siblings by parent (all), and the messages they were computed from (of)
  #archive;
  #events;
  #writes = Promise.resolve();
  #unstored = new Map();    // id -> message that is not stored yet
  #pending = 0;
  #stored = 0;        // time when a growing reply was last stored
  #later = null;
  #waits = false;     // waits for the other tab to end

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {{onChange: (talk: Talk) => void, onUnsaved: () => void}} events onUnsaved: called once, until everything is
   *   stored again
   * @param {?{entry: object, messages: object[]}} found as stored; null for a new conversation
   */
  constructor(archive, events, found = null) {
    this.#archive = archive;
    this.#events = events;
    if (found) this.#set(found);
  }

  get isEmpty() { return this.path.length === 0; }
  get title() { return this.entry?.title ?? (this.isEmpty ? '' : titleOf(this.path[0])); }
  get leaf() { return this.path.findLast((message) => !isNothing(message))?.id ?? ''; }

  /** Whether its last reply has failed, which only this tab knows. */
  get hasFailed() { return Boolean(this.path.at(-1)?.error); }

  /** Whether this tab knows more than the store. */
  get isLive() {
    return Boolean(this.run || this.held || this.queue.length || this.hasFailed || this.isUnsaved);
  }

  /** All messages with the same parent as this one, itself included, oldest first. */
  siblings({ parent }) {
    if (this.#families.of !== this.messages) this.#families = { of: this.messages, all: familiesOf(this.messages) };
    return this.#families.all.get(parent) ?? [];
  }

  /** Gives a new conversation its id. */
  begin() { this.id ||= newId(); }

  /** Adds a question after another message ('': as the first one) and shows it. @returns {object} the question */
  ask({ content, media = [], texts = [] }, parent = this.leaf) {
    const parts = { ...(media.length && { media }), ...(texts.length && { texts }) };
    const question = this.#add({ role: 'user', content, parent, ...parts });
    this.#store([question], { leaf: question.id, deleted: 0 });
    this.#events.onChange(this);
    return question;
  }

  /** Adds the reply to a question. It is stored once it has text; its writer shows it. */
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

  /** Adds another form of a reply, as the visitor has written it, and shows it. */
  rewrite({ parent, model, steps, media }, content) {
    const called = { ...(steps && { steps }), ...(media && { media }) };
    const reply = { ...this.reply(parent), content, model, ...called, note: key('Edited.'), writing: false };
    this.messages = [...this.messages.slice(0, -1), reply];
    this.put(reply);
    this.#show(reply.id);
    this.#events.onChange(this);
  }

  /** Removes a message and all that follow it. @returns {() => void} brings them back */
  remove(message) {
    const { leaf } = this;
    const gone = allBelow(this.messages, message.id);
    this.messages = this.messages.filter((one) => !gone.has(one));
    this.#turn(newestBelow(this.messages, message.parent), [], [...gone]);
    return () => {
      this.messages = [...this.messages, ...gone];
      this.#turn(leaf, [...gone]);
    };
  }

  /** Moves the conversation to the top of the list, because a reply with these settings was requested. */
  touch(preset) {
    this.preset = preset;
    this.#store([], { changed: Date.now(), preset });
  }

  /** Keeps settings of its replies, which the visitor has changed. */
  keep(preset) {
    this.preset = preset;
    this.#store([], { preset });
  }

  /** Takes over a title that a model has made. */
  entitle(title) {
    this.#pending++;
    const write = async () => {
      this.entry = await this.#archive.entitle(this.id, title).catch(() => null) ?? this.entry;
      this.#events.onChange(this);
    };
    this.#writes = this.#writes.then(write).finally(() => { this.#pending--; });
  }

  /** Stores a message in its present state. */
  put(message) {
    this.#forgetLater();
    this.#stored = performance.now();
    this.#store([{ ...message }], { leaf: this.leaf });
  }

  /** Stores a growing message soon. In a hidden tab, where timers sleep, the next addition does it. */
  grown(message) {
    const due = this.#pending ? STORE_MS : this.#stored + STORE_MS - performance.now();
    if (due <= 0) this.put(message);
    else
      this.#later ??= setTimeout(() => {
        this.#later = null;
        this.grown(message);
      }, due);
  }

  #forgetLater() {
    clearTimeout(this.#later);
    this.#later = null;
  }

  /** Shows the branch of a message. */
  choose(message) {
    this.#turn(newestBelow(this.messages, message.id));
  }

  /** Shows the branch that ends with a leaf. */
  #turn(leaf, added = [], gone = []) {
    this.#store(added, { leaf }, gone);
    this.#show(leaf);
    this.#events.onChange(this);
  }

  /**
   * Notes the first message that the model still reads ('': all), as the library told. It is shown, even after a
   * reload.
   */
  readFrom(first) {
    if (first === this.first) return;
    this.first = first;
    this.#store([], { first });
    this.#events.onChange(this);
  }

  /**
   * Called when a reply has failed. A failed reply without text is no part of the conversation; it is shown until the
   * next question.
   */
  fail(message) {
    if (!isNothing(message)) return this.put(message);
    this.#forgetLater();
    this.messages = this.messages.filter(({ id }) => id !== message.id);
    return undefined;
  }

  /** Ends the running reply. Its text stays. Resolves when another reply may be requested. */
  async stop() {
    const { run, held } = this;
    await run?.stop();
    await held?.catch(() => {});    // the caller of the reply handles its failure
  }

  /** Resolves when everything is stored. */
  stored() { return this.#writes; }

  get isStoring() { return this.#pending > 0; }

  /** Reads the conversation again, since somebody else has changed it. */
  async follow() {
    if (this.run) return;
    await this.#writes;
    const found = await this.#archive.read(this.id).catch(() => null);
    if (!found || this.run || this.#pending || this.hasFailed || this.isUnsaved) return;
    this.#set(found);
    this.#events.onChange(this);
  }

  #add(message) {
    for (const one of this.path) delete one.error;    // a new message makes old failures irrelevant
    const added = { ...message, id: newId() };
    this.messages = [...this.messages, added];
    this.path = pathTo(this.messages, added.id);
    return added;
  }

  #store(messages, fields, gone = []) {
    this.#pending++;
    this.#writes = this.#writes.then(() => this.#write(messages, fields, gone)).finally(() => { this.#pending--; });
  }

  /** Writes messages, with those that could not be stored before, which come earlier in the conversation. */
  async #write(messages, fields, gone) {
    for (const message of messages) this.#unstored.set(message.id, message);
    for (const { id } of gone) this.#unstored.delete(id);
    const all = [...this.#unstored.values()];
    const now = this.isUnsaved ? { leaf: this.leaf, first: this.first, preset: this.preset, ...fields } : fields;
    try {
      if (gone.length) await this.#archive.cut(this.id, gone);
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
    this.preset = entry.preset;
    this.messages = messages;
    this.#show(entry.leaf);
  }

  /** Waits until the other tab has ended, which may happen without a message. */
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

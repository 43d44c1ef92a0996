// SPDX-License-Identifier: MIT
// The conversations of this tab: the one that is shown, and others of which this tab knows more than the store, because
// a reply is being written there, has failed, or could not be stored. Replies continue while other conversations are
// shown. All views show this state.
import { read, write } from '../shell/storage.js';
import { Talk } from './talk.js';

/** Key of the conversation that a tab shows; it outlives a reload. */
const OPEN = 'quern:open';

export class Talks {
  current;
  tell;                     // called when a state has changed
  #away = new Set();
  #unseen = new Map();      // id -> 'done' or 'failed': end of a reply that was not seen yet
  #wanted = null;           // token of the latest open()
  #archive;
  #events;

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {object} events
   * @param {() => void} events.onChange the content or the choice of the conversation that is shown has changed
   * @param {() => void} events.onStates the state of some conversation has changed
   * @param {() => void} events.onUnsaved something could not be stored
   */
  constructor(archive, { onChange, onStates, onUnsaved }) {
    this.#archive = archive;
    this.#events = { onUnsaved, onChange: (talk) => { if (talk === this.current) this.#shown(onChange); } };
    this.tell = onStates;
    this.current = new Talk(archive, this.#events);
    archive.watch((id, elsewhere) => this.#follow(id, elsewhere));
  }

  /** Conversations in which this tab writes a reply. */
  get running() { return [this.current, ...this.#away].filter(({ run }) => run); }

  /** Rows of the list for conversations that only this tab has. */
  get unstored() {
    const all = [this.current, ...this.#away].filter(({ isUnsaved, entry }) => isUnsaved && !entry);
    return all.map(({ id, title }) => ({ id, title: title, isUnstored: true }));
  }

  /** Whether this tab knows more than the store. */
  get isLive() { return this.current.isLive || this.#away.size > 0; }

  /** States for the list: id -> 'waiting' or 'writing' now; 'done' or 'failed' if that was not seen yet. */
  get states() {
    const now = this.running.map(({ id, run }) => [id, run.phase === 'waiting' ? 'waiting' : 'writing']);
    return new Map([...this.#unseen, ...now]);
  }

  /**
   * Shows the conversation of the address, or that this tab has shown before, or else the one that changed last.
   * @param {string} linked id in the address, or ''
   */
  async resume(linked) {
    const latest = async () => (await this.#archive.list()).sort((a, b) => b.changed - a.changed)[0]?.id;
    const id = (linked || read(OPEN, 'sessionStorage')) ?? (await latest());
    await this.open(id ?? '');
  }

  /** Shows a conversation, or a new one (''). If several calls overlap, the last one counts. */
  async open(id) {
    const wanted = this.#wanted = {};
    await this.current.stored();
    const found = id && !this.#find(id) ? await this.#archive.read(id).catch(() => null) : null;
    if (wanted === this.#wanted) this.#show((id && this.#find(id)) || new Talk(this.#archive, this.#events, found));
  }

  /** Called when a conversation's reply has ended. @param {'done' | 'failed' | 'stopped'} how */
  ended(talk, how) {
    if (talk !== this.current && how !== 'stopped') this.#unseen.set(talk.id, how);
  }

  /** Called when everything of a conversation has been stored. */
  settled(talk) {
    if (!talk.isLive) this.#away.delete(talk);
  }

  #find(id) {
    return [this.current, ...this.#away].find((talk) => talk.id === id);
  }

  #show(talk) {
    const last = this.current;
    this.#away.delete(talk);
    if (last !== talk && last.isLive) this.#away.add(last);
    this.#unseen.delete(talk.id);
    this.current = talk;
    this.#events.onChange(talk);
  }

  #shown(onChange) {
    write(OPEN, this.current.id, 'sessionStorage');
    onChange();
  }

  /**
   * Called when a conversation has changed in the store, here or in another tab. A deleted conversation takes its
   * running reply along.
   */
  async #follow(id, elsewhere) {
    const talk = this.#find(id);
    if (!talk && !this.#unseen.has(id)) return;
    const isKnown = !elsewhere && talk?.isStoring;
    const isDeleted = await this.#archive.isDeleted(id).catch(() => false);
    if (isDeleted) this.#gone(id);
    else if (talk === this.current && !isKnown) talk.follow();
    else if (elsewhere && talk?.hasFailed && !talk.isUnsaved) this.#away.delete(talk);
  }

  #gone(id) {
    const talk = this.#find(id);
    talk?.run?.stop();
    if (talk === this.current) this.open('');
    else if (!talk?.held) this.#away.delete(talk);
    this.#unseen.delete(id);
    this.tell();
  }
}

// SPDX-License-Identifier: MIT
// The conversations that this tab has at hand: the one that is shown, and those elsewhere that know more than the store
// does, because a reply is being written in them or has failed, or the store has not taken it. What is asked goes on
// wherever the visitor is; all views follow what stands here.
import { read, write } from '../shell/storage.js';
import { titleOf } from './record.js';
import { Talk } from './talk.js';

/** Which conversation a tab shows outlives its reload. */
const OPEN = 'quern:open';

export class Talks {
  current;
  tell;                     // says that a state has changed
  #away = new Set();
  #unseen = new Map();      // id -> 'done' or 'failed': how a reply ended that nobody has seen yet
  #wanted = null;           // what is about to be shown
  #archive;
  #events;

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {object} events
   * @param {() => void} events.onChange what is shown, or which conversation that is, has changed
   * @param {() => void} events.onStates how some of them do has changed
   * @param {() => void} events.onUnsaved something could not be stored
   */
  constructor(archive, { onChange, onStates, onUnsaved }) {
    this.#archive = archive;
    this.#events = { onUnsaved, onChange: (talk) => { if (talk === this.current) this.#shown(onChange); } };
    this.tell = onStates;
    this.current = new Talk(archive, this.#events);
    archive.watch((id, elsewhere) => this.#follow(id, elsewhere));
  }

  /** Those in which this tab writes a reply. */
  get running() { return [this.current, ...this.#away].filter(({ run }) => run); }

  /** Of those that only this tab has, what the list shows. */
  get unstored() {
    const all = [this.current, ...this.#away].filter(({ isUnsaved, entry }) => isUnsaved && !entry);
    return all.map(({ id, title }) => ({ id, title: titleOf(title), isUnstored: true }));
  }

  /** Whether this tab knows more than the store does. */
  get isLive() { return this.current.isLive || this.#away.size > 0; }

  /**
   * How those conversations do of which there is something to say: id -> 'waiting' or 'writing' now, 'done' or 'failed'
   * and not seen yet.
   */
  get states() {
    const now = this.running.map(({ id, run }) => [id, run.phase === 'waiting' ? 'waiting' : 'writing']);
    return new Map([...this.#unseen, ...now]);
  }

  /** Shows what this tab has shown before, or else what changed last. */
  async resume() {
    const id =
      read(OPEN, 'sessionStorage') ?? (await this.#archive.list()).sort((a, b) => b.changed - a.changed)[0]?.id;
    await this.open(id ?? '');
  }

  /** Shows a conversation, or a new one (''). Of several that are wanted at once the last one counts. */
  async open(id) {
    const wanted = this.#wanted = {};
    await this.current.stored();
    const found = id && !this.#find(id) ? await this.#archive.read(id).catch(() => null) : null;
    if (wanted === this.#wanted) this.#show((id && this.#find(id)) || new Talk(this.#archive, this.#events, found));
  }

  /** The reply of a conversation has ended. @param {'done' | 'failed' | 'stopped'} how */
  ended(talk, how) {
    if (talk !== this.current && how !== 'stopped') this.#unseen.set(talk.id, how);
  }

  /** Whatever was to be written in a conversation is stored. */
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
   * A conversation has changed in the store: here or in another tab. One that is deleted takes its reply along, which
   * is stored with it.
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

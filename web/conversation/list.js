// SPDX-License-Identifier: MIT
// The list of conversations: beside the page if that is wide, over it on a phone. Conversations can be searched,
// opened, named, pinned, deleted (and restored), and saved as files. They stand below the day or month of their last
// question. A row's buttons are made on demand, since there may be a thousand rows.
import { announce, byId, button, element, iconButton, isComposed, saveFile } from '../shell/dom.js';
import { explain } from '../shell/failure.js';
import { period, when } from '../shell/format.js';
import { addressOf } from '../shell/link.js';
import { read, write } from '../shell/storage.js';
import { list, plural, say } from '../shell/words.js';
import { UNDO_MS } from './archive.js';
import { pickFiles } from './files.js';

const KEY = 'quern:list';

/** Rows that are made at once, and rows that are added at a time. */
const FIRST = 40;
const MORE = 100;

const WIDE = matchMedia('(min-width: 64rem)');

/** Words for a conversation whose reply is being written, or has ended and was not seen yet. */
const STATES = { waiting: say`Waiting`, writing: say`Writing`, done: say`New reply`, failed: say`Failed` };

/** The note beside a title. */
const noteOf = ({ changed, isUnstored }) => (isUnstored ? say`Not stored` : when(changed));

/** The words above the conversations with which one stands in the list. */
const headingOf = (entry) =>
  (entry.isUnstored ? noteOf(entry) : (entry.pinned ? say`Pinned` : period(entry.changed)));

export class List {
  #dialog = byId('list');
  #rows = byId('list-rows');
  #search = byId('list-search');
  #archive;
  #events;
  #current = '';
  #states = new Map();    // id -> a key of STATES
  #late = null;
  #filling = 0;
  #made = new Map();      // id -> {row, said}, and words of a heading -> {row}, while the list is open
  #places;                // of find.js, from the first search on

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {object} events
   * @param {(id: string, place?: {message: string, words: string}) => void} events.onOpen a conversation, at a place
   *   that was searched
   * @param {() => object[]} events.unstored {id, title, isUnstored} of conversations that only this tab has
   * @param {(message: string, actions: Node[], ms: number) => void} events.onNotice
   */
  constructor(archive, events) {
    this.#archive = archive;
    this.#events = events;
    archive.watch(() => this.#soon());
    byId('list-button').addEventListener('click', () => this.toggle());
    byId('list-new').addEventListener('click', () => this.#open(''));
    byId('list-close').addEventListener('click', () => this.toggle(false));
    this.#search.addEventListener('input', () => this.#fill());
    this.#search.addEventListener('focus', () => archive.search(''));   // reads the texts in advance
    byId('list-export').addEventListener('click', () => this.#export());
    byId('list-import').addEventListener('click', () => this.#import());
    byId('list-delete').addEventListener('click', () => this.#removeAll());
    this.#dialog.addEventListener('click', (event) => { if (event.target === this.#dialog) this.toggle(false); });
    this.#dialog.addEventListener('close', () => {
      clearTimeout(this.#filling);
      this.#rows.replaceChildren();
      this.#made.clear();
      byId('list-button').setAttribute('aria-expanded', 'false');
    });
    WIDE.addEventListener('change', () => this.toggle(WIDE.matches && read(KEY) === true));
    if (WIDE.matches && read(KEY) === true) this.toggle(true);
  }

  /** Shows or hides the list. The wide layout remembers which. */
  async toggle(open = !this.#dialog.open) {
    if (this.#dialog.open) this.#dialog.close();
    if (WIDE.matches) write(KEY, open);
    if (!open) return;
    byId('list-button').setAttribute('aria-expanded', 'true');
    if (WIDE.matches) this.#dialog.show();
    else this.#dialog.showModal();
    await this.#fill();
  }

  /** Opens the list at its search. */
  async search() {
    if (!this.#dialog.open) await this.toggle(true);
    this.#search.select();
  }

  /**
   * Marks the conversation that is shown, and the states of others.
   * @param {Map<string, string>} states id -> a key of STATES
   */
  mark(id, states) {
    this.#current = id;
    this.#states = states;
    if (this.#events.unstored().length) this.#soon();     // the archive does not report them
    this.#markRows();
    this.#tell([...states].filter(([other]) => other !== id).map(([, state]) => state));
  }

  /** Tells in the button's name what happens in other conversations, for visitors who do not see the rows. */
  #tell(states) {
    const ended = states.filter((state) => state === 'done' || state === 'failed').length;
    const running = states.length - ended;
    const node = byId('list-button');
    node.dataset.news = ended ? 'done' : (running && 'writing') || '';
    node.setAttribute('aria-label', list(
      say`Conversations`,
      running && plural(running, '{1} being written', '{1} being written'),
      ended && plural(ended, '{1} to look at', '{1} to look at'),
    ));
  }

  #markRows(rows = this.#rows.children) {
    for (const row of rows) {
      const [open] = row.getElementsByClassName('list-open');
      if (!open) continue;      // its name is being edited
      const { id, state = '' } = row.dataset;
      const now = this.#states.get(id) ?? '';
      if (id === this.#current) open.setAttribute('aria-current', 'true');
      else open.removeAttribute('aria-current');
      if (now === state) continue;
      row.dataset.state = now;
      open.querySelector('.list-state').textContent = STATES[now] ?? '';
    }
  }

  /** Fills the list soon. A growing reply changes its conversation twice a second. */
  #soon() {
    this.#late ??= setTimeout(() => {
      this.#late = null;
      if (this.#dialog.open && !this.#rows.querySelector('input')) this.#fill();
    }, 300);
  }

  async #fill() {
    const words = this.#search.value.trim();
    const [stored, found] = await Promise.all([this.#archive.list(), words ? this.#archive.search(words) : null]);
    if (words !== this.#search.value.trim()) return;
    const entries = [...this.#events.unstored(), ...stored];
    const wanted = found ? entries.filter(({ id }) => found.has(id)) : entries;
    const count = Math.max(FIRST, this.#rows.childElementCount);
    this.#show(this.#rowsOf(wanted.slice(0, count)));
    this.#places?.clear();
    this.#rest(wanted.slice(count), wanted[count - 1]);
    byId('list-none').textContent = wanted.length ? '' : (words ? say`Nothing found.` : say`No conversation yet.`);
    byId('list-none').hidden = wanted.length > 0;
    this.#ready(this.#rows.children);
  }

  /** Marks rows, and lets a search show its places in them. */
  async #ready(rows) {
    this.#markRows(rows);
    if (!this.#search.value.trim()) return;
    const { Places } = await import('./find.js');
    this.#places ??= new Places(this.#archive, this.#search);
    this.#places.watch(rows);
  }

  /** Replaces the rows only if something has changed, so that a visitor can press them; then the focus is kept. */
  #show(rows) {
    const { children } = this.#rows;
    if (rows.length === children.length && rows.every((row, i) => row === children[i])) return;
    const held = document.activeElement;
    const { id } = held?.closest('#list-rows li')?.dataset ?? {};
    this.#rows.replaceChildren(...rows);
    if (id && !held.isConnected) this.#rows.querySelector(`[data-id="${id}"] .list-open`)?.focus();
    else if (id) held.focus();
  }

  /** Adds the remaining rows, which follow the row of `last`, when there is time. */
  #rest(entries, last) {
    clearTimeout(this.#filling);
    if (!entries.length) return;
    this.#filling = setTimeout(() => {
      const rows = this.#rowsOf(entries.slice(0, MORE), last);
      this.#rows.append(...rows);
      this.#rest(entries.slice(MORE), entries[MORE - 1]);
      this.#ready(rows);
    }, 30);
  }

  /** The rows of entries that follow the one of `last`, with their headings. */
  #rowsOf(entries, last) {
    let above = last && headingOf(last);
    return entries.flatMap((entry) => {
      const heading = headingOf(entry);
      if (heading === above) return [this.#rowOf(entry)];
      above = heading;
      return [this.#headingRow(heading), this.#rowOf(entry)];
    });
  }

  #headingRow(words) {
    const key = `${words}:`;    // no id
    const made = this.#made.get(key) ?? { row: element('li', { className: 'list-heading' }, element('h3', {}, words)) };
    this.#made.set(key, made);
    return made.row;
  }

  /** Returns the row of an entry: the existing one, with its open buttons, if it still says the same. */
  #rowOf(entry) {
    const said = [entry.title, entry.pinned, noteOf(entry)].join('\n');
    const made = this.#made.get(entry.id);
    if (made?.said === said) return made.row;
    const row = this.#row(entry);
    this.#made.set(entry.id, { row, said });
    return row;
  }

  #row(entry) {
    // A link, so that a conversation can be opened in another tab and bookmarked.
    const onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#open(entry.id);
    };
    const open = element('a', { className: 'list-open', href: addressOf(entry.id), onclick });
    open.append(
      element(
        'span',
        { className: 'list-title', dir: 'auto' },
        entry.pinned ? '★ ' : '',
        entry.title || say`Conversation`,
      ),
      element(
        'span',
        { className: 'list-note' },
        element('span', { className: 'list-state' }),
        element('time', {}, noteOf(entry)),
      ),
    );
    const more = iconButton('more', say`More about ${entry.title}`, () => this.#more(row, entry, more));
    more.setAttribute('aria-expanded', 'false');
    const row = element('li', {}, open, ...(entry.isUnstored ? [] : [more]));
    row.dataset.id = entry.id;
    return row;
  }

  #open(id) {
    if (this.#dialog.matches(':modal')) this.toggle(false);
    this.#events.onOpen(id, this.#places?.get(id));
  }

  #more(row, entry, more) {
    const shown = row.querySelector('.list-actions');
    more.setAttribute('aria-expanded', String(!shown));
    if (shown) return shown.remove();
    const remove = () => this.#remove([entry.id], say`“${entry.title}” is deleted.`, entry.id);
    const actions = element('div', { className: 'list-actions' },
      button(say`Rename`, () => this.#rename(row, entry), 'link-button'),
      button(
        entry.pinned ? say`Unpin` : say`Pin`,
        () => this.#archive.patch(entry.id, { pinned: !entry.pinned }),
        'link-button',
      ),
      button(say`Save as text`, () => this.#save(entry), 'link-button'),
      button(say`Delete`, remove, 'link-button danger'));
    row.append(actions);
    return actions.firstElementChild.focus();
  }

  #rename(row, entry) {
    this.#made.delete(entry.id);    // the row is made anew after the edit
    const field = element('input', { value: entry.title, maxLength: 80, dir: 'auto' });
    field.setAttribute('aria-label', say`Name of the conversation`);
    const done = async (keep) => {
      field.onblur = null;
      field.remove();
      if (keep && field.value.trim()) await this.#archive.patch(entry.id, { title: field.value.trim() });
      await this.#fill();
      this.#rows.querySelector(`[data-id="${entry.id}"] .list-open`)?.focus();
    };
    field.onkeydown = (event) => {
      if (isComposed(event) || !['Enter', 'Escape'].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      done(event.key === 'Enter');
    };
    field.onblur = () => done(true);
    row.replaceChildren(field);
    field.select();
  }

  /** Deletes conversations, and says so. A button brings them back and shows the one of this id. */
  async #remove(ids, sentence, shown) {
    await this.#archive.remove(...ids);
    const undo = async () => {
      await this.#archive.restore(...ids);
      this.#events.onOpen(shown);
    };
    this.#events.onNotice(sentence, [button(say`Undo`, undo)], UNDO_MS);
    announce(sentence);
    this.#search.focus();
  }

  async #removeAll() {
    const ids = (await this.#archive.list()).map(({ id }) => id);
    const sentence = plural(ids.length, 'One conversation is deleted.', '{1} conversations are deleted.');
    if (ids.length) this.#remove(ids, sentence, this.#current);
  }

  #save({ id, title }) {
    return this.#try(async () => {
      const found = await this.#archive.read(id);
      const { asMarkdown } = await import('./late/as-text.js');
      if (found) saveFile(`${title}.md`, asMarkdown(found), 'text/markdown');
    });
  }

  #export() {
    const name = `quern-${new Date().toISOString().slice(0, 10)}.json`;
    return this.#try(async () => saveFile(name, await this.#archive.export(), 'application/json'));
  }

  async #import() {
    const [file] = await pickFiles('.json,.jsonl,.zip,application/json,application/zip', false);
    if (!file) return;
    await this.#try(async () => {
      const { addFrom } = await import('./late/imports.js');
      await addFrom(file, this.#archive, (sentence) => this.#say(sentence));
    });
  }

  /** Does some work, and says why if it fails. */
  async #try(work) {
    await work().catch((error) => this.#say(explain(error).message));
  }

  #say(sentence) {
    this.#events.onNotice(sentence, [], UNDO_MS);
  }
}

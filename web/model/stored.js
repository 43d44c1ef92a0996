// SPDX-License-Identifier: MIT
// The stored models, in the model dialog: their state, and buttons to use one, to resume its download, or to delete it.
// Also shows what models have stored of conversations, how much space all of it takes, and whether the browser promises
// to keep it. Deleting asks in the row itself.
import { models } from 'quern';
import { announce, byId, button, element } from '../shell/dom.js';
import { explain } from '../shell/failure.js';
import { bytes, oneLine } from '../shell/format.js';
import { joined, list, plural, say } from '../shell/words.js';
import { place } from './address.js';

const title = (name) => oneLine(name.replace(/\.gguf$/i, ''), 80) || say`Model`;

const QUANT = /(?<=^|[-_.])(I?Q[1-8](?:_(?:\d|K(?:_[A-Z]{1,2})?|NL|[A-Z]{1,3}))?|BF16|F16|F32)(?=[-.]|$)/gi;

/**
 * The quantization in a file's name, such as Q4_K_M in Qwen3-4B-Q4_K_M.gguf; the last one if there are several; '' if
 * there is none.
 */
const quantOf = (name) => [...name.matchAll(QUANT)].at(-1)?.[1].toUpperCase() ?? '';

/** A name without the quantization at its end, which is shown beside it. */
const withoutQuant = (name, quant) =>
  (quant && name.toUpperCase().endsWith(quant) && name.slice(0, -quant.length - 1)) || name;

/** The beginning of the addresses under which files from the disk are stored; no server has them. */
export const PICKED = 'https://this-device.invalid/';

/** Bytes that a stored model takes here. */
const amountOf = ({ complete, size, loaded }) => (complete && size) || loaded;

export const findCopy = (entries, url) => entries.find((entry) => place(entry.url) === place(url)) ?? null;

/** The stored copy of a model, or null, also if nothing can be stored here. */
export const findStored = async (url) => findCopy(await models.list().catch(() => []), url);

export class Stored {
  #list = byId('stored-list');
  #choose;
  #onShown;
  #inUse = '';    // address of the model in use
  #entries = [];  // from the last listing
  #left = Infinity;   // bytes that can still be stored

  /**
   * @param {(choice: import('./session.js').Choice) => void} choose
   * @param {() => void} onShown the rows are new
   */
  constructor(choose, onShown) {
    this.#choose = choose;
    this.#onShown = onShown;
    byId('persist').addEventListener('click', () => this.#persist());
  }

  /** Bytes that can still be stored. */
  get left() { return this.#left; }

  /** What a download of this address would find: a stored copy, and the bytes that can still be stored. */
  outlook(url) {
    return { copy: findCopy(this.#entries, url), left: this.#left };
  }

  /** Shows the present state. @param {string} [inUse] address of the model in use */
  async refresh(inUse = this.#inUse) {
    this.#inUse = place(inUse);
    const [entries, usage, talks] = await Promise.all([models.list(), models.usage(), models.saved()]).catch(
      (error) => [null, error],
    );
    if (entries) this.#show(entries, usage, talks);
    else this.#showFailure(usage);
    this.#onShown();
  }

  #show(entries, usage, talks) {
    this.#entries = entries;
    this.#left = usage.quota ? Math.max(0, usage.quota - usage.used) : Infinity;
    this.#list.replaceChildren(
      ...entries.map((entry) => this.#row(entry)),
      ...(talks.length ? [this.#talksRow(talks)] : []),
    );
    byId('stored-none').hidden = entries.length > 0;
    this.#showUsage(usage, entries.length > 0);
  }

  #showFailure(error) {
    this.#list.replaceChildren();
    byId('stored-none').hidden = true;
    byId('storage').hidden = true;
    byId('persist').hidden = true;
    byId('storage-text').textContent = say`This browser stores no models for this page: ${explain(error).message}`;
  }

  #showUsage({ used, quota, persisted }, any) {
    const gauge = byId('storage');
    gauge.hidden = !quota;
    gauge.setAttribute('aria-valuenow', String(used));
    gauge.setAttribute('aria-valuemax', String(quota));
    gauge.setAttribute('aria-valuetext', say`${bytes(used)} of ${bytes(quota)}`);
    byId('storage-fill').style.width = `${quota ? Math.min(100, (100 * used) / quota) : 0}%`;
    byId('storage-text').textContent = joined(
      quota ? say`${bytes(used)} used, ${bytes(this.#left)} left for this page.` : say`${bytes(used)} used.`,
      any && (persisted ? say`Kept until you delete them.` : say`The browser may delete them when space is short.`),
    );
    byId('persist').hidden = persisted || !any;
  }

  async #persist() {
    const granted = await models.persist().catch(() => false);
    await this.refresh();
    announce(granted ? say`The models will be kept.` : say`The browser did not agree to keep them.`);
    if (granted) return byId('stored-title').focus();
    const line = byId('storage-text');
    line.textContent = joined(line.textContent, say`It did not agree to keep them for now.`);
    return undefined;
  }

  // --- a row ---

  #row(entry) {
    const name = title(entry.name);
    const quant = quantOf(entry.name);
    const row = element('li', { className: 'stored-row' }, element('div', { className: 'row-text' },
      element('strong', {}, element('bdi', {}, withoutQuant(name, quant))), ...this.#tags(quant, entry),
      element('p', {}, this.#state(entry)), ...this.#bar(entry)));
    const { url, vision = '', size, complete } = entry;
    Object.assign(row.dataset, { testid: 'stored', url, vision, size, complete, name });
    const amount = amountOf(entry);
    const [label, full] = complete ? [say`Load`, say`Load ${name}`] : [say`Resume`, say`Resume ${name}`];
    const use = button(label, () => this.#choose({ source: url, ...(vision && { vision }), label: name, kind: 'url' }));
    use.setAttribute('aria-label', full);
    const isUsable = complete || !url.startsWith(PICKED);
    row.append(this.#actions(row, { name, amount, ...(isUsable && { use }), remove: () => models.remove(entry.id) }));
    return row;
  }

  /** The row about the models' caches of conversations. The conversations themselves do not depend on it. */
  #talksRow(talks) {
    const amount = talks.reduce((sum, talk) => sum + talk.bytes, 0);
    const name = say`Cache of conversations`;
    const about = plural(
      talks.length,
      '{2}, so that one conversation goes on at once',
      '{2}, so that {1} conversations go on at once',
      bytes(amount),
    );
    const row = element(
      'li',
      { className: 'stored-row' },
      element(
        'div',
        { className: 'row-text' },
        element('strong', {}, name),
        element('p', {}, about),
      ),
    );
    row.dataset.testid = 'stored-talks';
    row.append(this.#actions(row, { name, amount, remove: () => models.forget() }));
    return row;
  }

  #tags(quant, { url }) {
    const texts = [quant, place(url) === this.#inUse && say`in use`].filter(Boolean);
    return texts.flatMap((text) => [' ', element('span', { className: 'tag' }, text)]);
  }

  #state(entry) {
    const { url, complete, size, files } = entry;
    const amount = bytes(amountOf(entry));
    const parts = files > 1 && plural(files, '{1} file', '{1} files');
    if (complete) return list(amount, parts, say`complete`);
    const rest = place(url) === this.#inUse ? say`the rest is not stored` : say`not complete`;
    return list(size ? say`${amount} of ${bytes(size)}` : say`${amount} of an unknown size`, parts, rest);
  }

  #bar({ complete, loaded, size }) {
    if (complete || !size) return [];
    const bar = element('progress', { max: size, value: loaded });
    bar.setAttribute('aria-hidden', 'true');    // the sentence above tells it
    return [bar];
  }

  /** @param {{name: string, amount: number, use?: Node, remove: () => Promise<void>}} what the row is about */
  #actions(row, what) {
    const remove = button(say`Delete`, () => this.#ask(row, what), 'button quiet');
    remove.setAttribute('aria-label', say`Delete ${what.name}`);
    return element('div', { className: 'row-actions' }, ...(what.use ? [what.use] : []), remove);
  }

  /** Asks in the row, with the focus on the harmless answer. */
  #ask(row, what) {
    const keep = button(say`Keep`, () => back());
    const { name } = what;
    const go = button(say`Delete`, () => this.#remove(row, what), 'button danger');
    go.setAttribute('aria-label', say`Delete ${name} for good`);
    const amount = bytes(what.amount);
    const asks = element('span', {}, say`Delete ${amount}?`);
    const question = element('div', { className: 'row-actions' }, asks, keep, go);
    question.setAttribute('role', 'group');
    question.setAttribute('aria-label', say`Delete ${name}, ${amount}?`);
    const actions = row.lastElementChild;
    const back = () => {
      question.replaceWith(actions);
      actions.lastElementChild.focus();
    };
    // Escape answers the question; the dialog stays.
    question.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      back();
    });
    actions.replaceWith(question);
    keep.focus();
  }

  async #remove(row, what) {
    for (const node of row.querySelectorAll('button')) node.disabled = true;
    try {
      await what.remove();
      announce(say`${what.name} is deleted.`);
      await this.refresh();
      byId('stored-title').focus();
    } catch (error) {
      const { message, hint } = explain(error);
      const problem = element('p', { className: 'problem' }, joined(message, hint));
      problem.setAttribute('role', 'alert');
      row.lastElementChild.replaceWith(this.#actions(row, what));
      row.querySelector('.row-text').append(problem);
      row.lastElementChild.lastElementChild.focus();
    }
  }
}

// SPDX-License-Identifier: MIT
// The part of the model dialog about models that search in documents: a row for the one that the page suggests, which
// is only downloaded, since it works beside the model in use (conversation/late/meaning.js), and what stored ones of
// its kind say of themselves. Fetched with the first dialog. A download goes on while the dialog is closed.
import { announce, button, byId, element } from '../../shell/dom.js';
import { bytes } from '../../shell/format.js';
import { joined, say } from '../../shell/words.js';
import { EMBEDDER, besides, isEmbedder, isSuggested } from './embedder.js';

const { label, quant, size, url, sha256 } = EMBEDDER;

/** The row, which is made once. */
class Row {
  #says = element('p');
  #bar = element('progress', { max: size, hidden: true, 'aria-label': say`Loading ${label}` });
  #actions = element('div', { className: 'row-actions' });
  #abort = null;      // while it is downloaded
  #problem = '';      // of the last download
  #page;
  nodes;

  constructor() {
    const words = element('div', { className: 'row-text' }, element('strong', {}, label), this.#says, this.#bar);
    const title = element('h3', { id: 'search-title' }, say`For searching in documents`);
    const shelf = element('ul', { className: 'shelf', id: 'search-shelf' }, element('li', {}, words, this.#actions));
    shelf.setAttribute('aria-labelledby', title.id);
    this.nodes = [title, shelf];
  }

  /** Shows the present state. @param {object} page see furnish() */
  async show(page) {
    this.#page = page;
    if (this.#abort) return;
    const copy = (await page.models.list().catch(() => [])).find(isSuggested);
    const { need, fits } = besides(EMBEDDER, page.model);
    const what = say`Finds the passages of long documents by their meaning, beside the model in use. It does not chat.`;
    if (copy?.complete) {
      this.#put(joined(what, say`It is on this device.`));
    } else {
      const much = fits ? '' : say`Both need about ${bytes(need)} of memory, which is much for this device.`;
      const start = button(copy?.loaded ? say`Resume` : say`Download`, () => this.#download());
      start.setAttribute('aria-label', copy?.loaded ? say`Resume ${label}` : say`Download ${label}`);
      this.#put(this.#problem || joined(what, say`${quant}: ${bytes(size)} to download.`, much), start);
    }
  }

  focus() {
    this.nodes[1].scrollIntoView({ block: 'center' });
    this.#actions.querySelector('button')?.focus();
  }

  #put(sentence, ...actions) {
    const held = this.#actions.contains(document.activeElement);
    this.#says.textContent = sentence;
    this.#says.classList.toggle('problem', sentence === this.#problem);
    this.#bar.hidden = !this.#abort;
    this.#actions.replaceChildren(...actions);
    if (held) actions.at(0)?.focus();
  }

  async #download() {
    const { models, explain, onStored } = this.#page;
    const { signal } = this.#abort = new AbortController();
    const onProgress = ({ loaded }) => {
      this.#bar.value = loaded;
      this.#says.textContent = say`${bytes(loaded)} of ${bytes(size)}`;
    };
    this.#problem = '';
    this.#put(say`Starting…`, button(say`Cancel`, () => this.#abort?.abort()));
    let told = '';
    try {
      await models.download(url, { sha256, signal, onProgress });
      told = say`${label} is on this device.`;
    } catch (error) {
      if (!signal.aborted) told = this.#problem = explain(error).message;
    }
    this.#abort = null;
    await this.show(this.#page);
    announce(told);
    onStored();
  }
}

let row = null;

/** Says of stored embedding models what they are for; they are not loaded to chat. */
function markStored() {
  for (const node of document.querySelectorAll('#stored-list li[data-url]')) {
    const actions = node.querySelector('.row-actions:not([role])');
    if (!isEmbedder(node.dataset.name) || !actions || node.querySelector('.searches')) continue;
    node.querySelector('strong').after(' ', element('span', { className: 'tag searches' }, say`for documents`));
    const isHere = node.dataset.complete === 'true' || isSuggested(node.dataset);     // else it can be resumed
    if (isHere && actions.childElementCount > 1) actions.firstElementChild.remove();
  }
}

/**
 * @param {object} page
 * @param {typeof import('quern').models} page.models
 * @param {(error: Error) => {message: string}} page.explain
 * @param {?import('quern').Model} page.model in use
 * @param {() => void} page.onStored the list of stored models is another
 */
export async function furnishSearch(page) {
  markStored();
  row ??= new Row();
  if (!row.nodes[0].isConnected) byId('model-dialog').append(...row.nodes);     // nothing that is read moves
  await row.show(page);
  if (byId('shelf').dataset.wanted !== 'embedder') return;
  delete byId('shelf').dataset.wanted;
  row.focus();
}

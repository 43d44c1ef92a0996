// SPDX-License-Identifier: MIT
// Keeps a model that was picked from the disk: a row of the model dialog with a switch, which copies the files to the
// models on this device, with progress. Afterwards the model is one of those, and the next visit loads it. The library
// stores models by addresses, so a file gets one that no server has; its size and date are parts of it, so that another
// file of the same name is another model. Fetched when the dialog is opened while such a model is in use.
import { announce, byId, element } from '../../shell/dom.js';
import { bytes } from '../../shell/format.js';
import { joined, say } from '../../shell/words.js';

/** Files that can be kept: one GGUF file, or the parts of one, and a projector behind them. */
function filesOf({ source, vision }) {
  const models = [source].flat().sort((a, b) => (a.name < b.name ? -1 : 1));
  const isPart = models.length === 1 || models.every(({ name }) => /-\d{5}-of-\d{5}\.gguf$/i.test(name));
  const all = [...models, ...(vision ? [vision] : [])];
  return isPart && all.every((file) => file instanceof File && /\.gguf$/i.test(file.name)) ? all : null;
}

class Row {
  node;
  #choice;
  #page;
  #files;
  #place;
  #size;
  #says;
  #bar;
  #keep;
  #abort = null;      // while the files are copied

  constructor(choice, files, page) {
    this.#choice = choice;
    this.#files = files;
    this.#page = page;
    this.#size = files.reduce((sum, { size }) => sum + size, 0);
    const { label, vision } = choice;
    const addressOf = ({ name, size, lastModified }) =>
      `${page.start}${size}-${Math.floor(lastModified)}/${encodeURIComponent(name)}`;
    this.#place = { source: addressOf(files[0]), ...(vision && { vision: addressOf(vision) }) };
    this.#bar = element('progress', { max: this.#size, 'aria-label': say`Copying ${label}` });
    this.#keep = element('button', { type: 'button', className: 'switch', onclick: () => this.#press() },
      element('span', { className: 'track' }), say`Keep on this device`);
    this.#keep.setAttribute('role', 'switch');
    this.#says = element('p');
    const name = element('strong', {}, element('bdi', {}, label));
    const parts = [name, ' ', element('span', { className: 'tag' }, say`in use`), this.#says, this.#bar];
    this.node = element('li', { className: 'stored-row' }, element('div', { className: 'row-text' }, ...parts),
      element('div', { className: 'row-actions' }, this.#keep));
    this.node.dataset.testid = 'picked';
    this.#show(joined(say`${bytes(this.#size)} on your disk.`, say`After a reload it has to be chosen again.`));
  }

  isOf(choice) { return this.#choice === choice; }

  /** @param {{isOn?: boolean, isProblem?: boolean}} [how] */
  #show(sentence, { isOn = false, isProblem = false } = {}) {
    this.#keep.setAttribute('aria-checked', String(isOn));
    this.#bar.hidden = !isOn;
    this.#says.textContent = sentence;
    this.#says.classList.toggle('problem', isProblem);
    if (isProblem) announce(sentence);
  }

  #press() {
    const left = this.#page.left();
    if (this.#abort) this.#abort.abort();
    else if (this.#size <= left) this.#copy();
    else {
      const sentence = say`It has ${bytes(this.#size)}, but only ${bytes(left)} can still be stored here.`;
      this.#show(sentence, { isProblem: true });
    }
  }

  async #copy() {
    const { models, explain, onKept } = this.#page;
    const { source, vision } = this.#place;
    const { signal } = this.#abort = new AbortController();
    const onProgress = ({ loaded }) => {
      this.#bar.value = loaded;
      this.#show(say`${bytes(loaded)} of ${bytes(this.#size)} are copied.`, { isOn: true });
    };
    onProgress({ loaded: 0 });
    try {
      await models.download(source, { files: this.#files, signal, onProgress, ...(vision && { vision }) });
      announce(say`${this.#choice.label} is kept on this device.`);
      this.node.remove();
      onKept(this.#place);
    } catch (error) {
      await models.remove(source).catch(() => {});
      if (signal.aborted) this.#show(say`It is not kept.`);
      else this.#show(explain(error).message, { isProblem: true });
    } finally {
      this.#abort = null;
    }
  }
}

let row = null;     // of the model that was in use at last; it may be copied while the dialog is closed

/**
 * Shows the row, if the model in use can be kept.
 * @param {import('../session.js').Choice} choice
 * @param {object} page
 * @param {object} page.models those of the library
 * @param {(error: Error) => {message: string}} page.explain
 * @param {string} page.start the beginning of the addresses of picked files
 * @param {() => number} page.left bytes that can still be stored
 * @param {(place: {source: string, vision?: string}) => void} page.onKept
 */
export function offerToKeep(choice, page) {
  const files = filesOf(choice);
  if (!files) return;
  if (!row?.isOf(choice)) row = new Row(choice, files, page);
  byId('stored-list').prepend(row.node);
  byId('stored-none').hidden = true;
}

// SPDX-License-Identifier: MIT
// The model dialog: the model in use, the stored models (kept.js), the models that the page knows by name (known.js),
// and two ways to any other model (an address, a file). Choosing a known file only fills the address field and says
// whether it fits. Only buttons called Load start a download, or ask for the files of a repository.
import { models, support } from 'quern';
import { byId, button, element } from '../shell/dom.js';
import { explain } from '../shell/failure.js';
import { bytes, oneLine, tokens } from '../shell/format.js';
import { joined, large, plural, say } from '../shell/words.js';
import { labelOf, place, readAddress, readRepository } from './address.js';
import { isProjector, lacksVision } from './vision.js';
import { PICKED, Stored } from './stored.js';
import { DEMO, KNOWN, UNKNOWN, findKnown, firstOffer, verdict } from './known.js';

/** What a load gets beside the address of a known file. */
const besides = ({ sha256, vision } = {}) => ({ sha256, ...(vision && { vision }) });

/** What computes. A device without the exact text was chosen so. */
function computedBy({ backend, gpu }) {
  if (backend !== 'webgpu') return say`the processor`;
  return gpu.exact ? say`the graphics device: the same text as everywhere` : say`the graphics device with fast kernels`;
}

export class Shelf {
  #dialog = byId('model-dialog');
  #url = byId('model-url');
  #note = byId('url-note');
  #stored = new Stored((choice) => this.#choose(choice), () => this.#furnish());
  #maxMemory = 0;     // bytes a model may use here
  #demo = button(say`Load`, () => this.#choose(DEMO));
  #hint = this.#note.textContent;
  #session;
  #onChoose;
  #onKept;
  #onCompare;

  /**
   * @param {import('./session.js').Session} session
   * @param {(choice: import('./session.js').Choice) => void} onChoose
   * @param {() => void} onKept the model in use, which came from the disk, is on this device now
   * @param {(choice: import('./session.js').Choice) => void} onCompare the model is to answer the last question, too
   */
  constructor(session, onChoose, onKept, onCompare) {
    this.#session = session;
    this.#onChoose = onChoose;
    this.#onKept = onKept;
    this.#onCompare = onCompare;
    byId('url-form').addEventListener('submit', (event) => this.#submit(event));
    this.#url.addEventListener('input', () => this.#edited());
    byId('file-input').addEventListener('change', ({ target }) => {
      this.chooseFiles([...target.files]);
      target.value = '';
    });
  }

  async open() {
    this.#showCurrent();
    this.#dialog.showModal();
    this.#fill();
    await this.#stored.refresh(this.#inUse);
  }

  /** Adds to the rows what needs more code, if that can be fetched. */
  #furnish() {
    const about = {
      session: this.#session, variant: support().variant, inUse: this.#inUse, onCompare: this.#onCompare,
      onStored: () => this.#stored.refresh(),
    };
    import('./late/rows.js').then(({ furnish }) => furnish(about), () => {});
    if (this.#session.choice?.kind === 'file') this.#offerToKeep().catch(() => {});
  }

  /** Offers to keep the model in use, which came from the disk. */
  async #offerToKeep() {
    const { offerToKeep } = await import('./late/keeping.js');
    const { choice } = this.#session;
    const onKept = (place) => {
      if (this.#session.choice === choice) this.#session.keptAt(place);
      this.#onKept();
      this.#stored.refresh(this.#inUse);
    };
    offerToKeep(choice, { models, explain, start: PICKED, left: () => this.#stored.left, onKept });
  }

  /** Another model is in use. */
  modelChanged() {
    if (this.#dialog.open) this.#showCurrent();
  }

  /** Address of the model in use; '' if it has none. */
  get #inUse() {
    const { model, choice } = this.#session;
    return model && choice.kind === 'url' ? choice.source : '';
  }

  #showCurrent() {
    const { model, choice } = this.#session;
    this.#facts(model?.info);
    this.#showDemo(model !== null && choice.kind === 'demo');
  }

  /** Shows the known models, once. */
  #fill() {
    if (this.#maxMemory) return;
    this.#maxMemory = support().maxMemory;
    byId('shelf').replaceChildren(
      this.#row(say`Demo model`, say`A toy of 3 MB that comes with this page`, this.#demo),
      ...KNOWN.map((known) => this.#knownRow(known)),
    );
  }

  /** The row of a known model: a button that loads the file that is best here, and one for each file. */
  #knownRow(known) {
    const offer = firstOffer();
    const isFirst = offer.known === known;
    const one = isFirst ? offer.one : known.files[0];
    const { fits, need } = verdict(known, one, this.#maxMemory);
    const about = say`${known.note}. ${one.quant}: ${bytes(one.size)} to download, about ${bytes(need)} of memory.`;
    const row = this.#row(known.label, about, ...known.files.map((each) => this.#pick(known, each)));
    const use = this.#loadButton(`${known.label} ${one.quant}`, { source: one.url, ...besides(one) });
    Object.assign(row.dataset, { url: one.url, size: one.size });
    if (fits) row.firstElementChild.after(use);
    use.classList.toggle('primary', isFirst);
    if (isFirst) row.querySelector('strong').after(' ', element('span', { className: 'tag' }, say`recommended`));
    return row;
  }

  /** @param {object} choice without its label and kind */
  #loadButton(name, choice) {
    const load = button(say`Load`, () => this.#choose({ label: labelOf(choice.source), kind: 'url', ...choice }));
    load.setAttribute('aria-label', say`Load ${name}`);
    return load;
  }

  /** Shows whether the demo model is in use; then it need not be loaded. */
  #showDemo(inUse) {
    this.#demo.disabled = inUse;
    this.#demo.textContent = inUse ? say`In use` : say`Load`;
    this.#demo.setAttribute('aria-label', inUse ? say`Demo model, in use` : say`Load Demo model`);
  }

  /** The button that offers one file of a known model. */
  #pick(known, one) {
    const { fits } = verdict(known, one, this.#maxMemory);
    const pick = button('', () => this.suggest(one), fits ? 'button pick' : 'button pick unfit');
    const size = fits ? bytes(one.size) : say`${bytes(one.size)}, too large`;
    pick.append(element('span', {}, one.quant), ' ', element('span', { className: 'size' }, size));
    // the name for screen readers says what is seen
    const { label } = known;
    pick.setAttribute('aria-label', fits ? say`Choose ${label} ${pick.textContent}` : say`Choose ${label} ${pick.textContent} for this browser`);
    return pick;
  }

  /** Offers a known file. Another press of Load fetches it. */
  async suggest({ url }) {
    await this.prefill(url);
    byId('load-url').focus();
  }

  /** Puts an address into the field and tells what Load would do. Nothing is fetched. */
  async prefill(text) {
    const { url } = readAddress(text);
    if (!url) return;
    const address = readRepository(text)?.repo ? text.trim() : url;
    this.#url.value = address;
    if (!this.#dialog.open) await this.open();
    if (this.#url.value !== address) return;    // the visitor has typed something else meanwhile
    this.#edited();
    byId('url-form').scrollIntoView({ block: 'center' });
  }

  /** Tells what Load would do with this address, and any problem. */
  #describe(url) {
    const found = findKnown(url);
    const { fits, text } = found ? verdict(found.known, found.one, this.#maxMemory)
      : { fits: true, text: say`Whether it fits is known after its first megabytes.` };
    const checked = found?.one.sha256
      ? say`Its checksum is known and will be compared.`
      : say`Unverified: its checksum is not known.`;
    this.#say(joined(this.#outlook(url, found?.one.size ?? 0), text, fits && checked), !fits);
  }

  #say(sentence, isProblem) {
    this.#note.textContent = sentence;
    this.#note.classList.toggle('problem', isProblem);
    this.#url.removeAttribute('aria-invalid');
  }

  /** Tells how many bytes would come, from where, and whether they can be stored. */
  #outlook(url, known) {
    if (this.#inUse && place(this.#inUse) === place(url)) return say`It is in use.`;
    const { copy, left } = this.#stored.outlook(url);
    if (copy?.complete) return say`It is on this device; nothing is downloaded.`;
    const size = known || copy?.size || 0;
    const rest = size - (copy?.loaded ?? 0);
    const { host } = new URL(url);
    const isPart = copy?.loaded && size;
    return joined(
      isPart && say`Load downloads the remaining ${bytes(rest)} from ${host} to this device.`,
      !isPart && (size
        ? say`Load downloads ${bytes(size)} from ${host} to this device.`
        : say`Load downloads it from ${host} to this device.`),
      rest > left && say`Only ${bytes(left)} can still be stored, so it will not stay.`,
    );
  }

  /** Chooses one file, the parts of a split file, or the files of a folder. @param {File[]} files */
  chooseFiles(files) {
    const vision = files.find(isProjector);
    const [first, ...others] = files.filter((file) => file !== vision);
    const { choice, model } = this.#session;
    if (!first)
      return (
        vision &&
        this.#choose(lacksVision(model) ? { ...choice, vision } : { source: vision, label: vision.name, kind: 'file' })
      );
    const label = others.length
      ? plural(others.length + 1, '{1} file', '{1} files')
      : oneLine(first.name.replace(/\.gguf$/i, ''), 60) || say`File`;
    return this.#choose({
      source: others.length ? [first, ...others] : first,
      ...(vision && { vision }),
      label,
      kind: 'file',
    });
  }

  #edited() {
    const { url, problem } = readAddress(this.#url.value);
    const { repo } = readRepository(this.#url.value) ?? {};
    this.#showFiles([]);
    if (repo) this.#say(say`Load looks for GGUF files in ${repo} on huggingface.co.`, false);
    else if (url) this.#describe(url);
    else this.#say(this.#url.value.trim() ? problem : this.#hint, false);
  }

  #submit(event) {
    event.preventDefault();
    const { url, problem } = readAddress(this.#url.value);
    const repository = readRepository(this.#url.value);
    if (repository?.repo) return this.#look(repository);
    if (url) return this.#choose({ source: url, label: labelOf(url), kind: 'url', ...besides(findKnown(url)?.one) });
    this.#say(problem, true);
    this.#url.setAttribute('aria-invalid', 'true');
    return this.#url.focus();
  }

  /** Shows the GGUF files of a repository. One without any is loaded as a folder; so the library says what is wrong. */
  async #look(repository) {
    const { value } = this.#url;
    const { repo, url } = repository;
    this.#say(say`Asking huggingface.co for the files of ${repo}…`, false);
    const files = await import('./hub.js').then(({ listFiles }) => listFiles(repository)).catch(() => []);
    if (value !== this.#url.value || !this.#dialog.open) return;
    if (!files.length) return this.#choose({ source: url, label: repo.split('/')[1], kind: 'url' });
    this.#say(plural(files.length, '{2} has one GGUF file:', '{2} has {1} GGUF models:', repo), false);
    this.#showFiles(files);
    byId('url-files').querySelector('button')?.focus();
  }

  #showFiles(files) {
    byId('url-files').replaceChildren(...files.map(({ name, url, size, sha256 }) => {
      const { text } = verdict(UNKNOWN, { size }, this.#maxMemory);
      return this.#row(name, say`${bytes(size)}. ${text}`, this.#loadButton(name, { source: url, sha256 }));
    }));
  }

  #choose(choice) {
    this.#dialog.close();
    this.#onChoose(choice);
  }

  #row(label, note, ...actions) {
    return element(
      'li',
      {},
      element('div', { className: 'row-text' }, element('strong', {}, label), element('p', {}, note)),
      element('div', { className: 'row-actions' }, ...actions),
    );
  }

  #facts(info) {
    const list = byId('model-facts');
    list.hidden = !info;
    if (!info) return list.replaceChildren();
    const facts = [
      [say`In use`, info.name],
      [say`Kind`, info.architecture],
      [say`Weights`, info.parameters && large(info.parameters)],
      [say`Memory`, info.memory && bytes(info.memory.used)],
      [say`Context`, info.contextSize && tokens(info.contextSize)],
      [say`Vision`, info.vision && say`images and videos`],
      [say`Computed by`, computedBy(info)],
      [say`Threads`, info.threads],
      [say`Instructions`, { relaxed: 'relaxed SIMD', simd: 'SIMD' }[info.variant] ?? info.variant],
      [say`License`, info.license],
    ];
    const rows = facts.filter(([, value]) => value).map(([name, value]) => element('div', {},
      element('dt', {}, name), element('dd', {}, element('bdi', {}, oneLine(value, 80)))));
    return list.replaceChildren(...rows);
  }
}

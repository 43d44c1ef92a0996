// SPDX-License-Identifier: MIT
// The stored models, seen from the page: lists them, and downloads and removes them. Only downloading needs a worker.
// Documentation: index.d.ts.

import { callable } from '../shared/called.js';
import { QuernError, badParam } from '../shared/errors.js';
import { guarded, storageError } from '../store/guard.js';
import { idOfSource } from '../store/identity.js';
import { forgetSaved, listSaved } from '../store/saved.js';
import { checkName, checkOptions } from './options.js';
import { DOWNLOAD } from '../shared/protocol.js';
import { resolveBoth, startWith } from './start.js';
import { Entry } from '../store/store.js';
import { storedOfType } from '../store/typed.js';

/** How long a removal waits for a load that is ending. */
const PATIENCE_MS = 3000;

const describe = ({ header: { id, name, files, projectors }, total, loaded, complete, used }) => ({
  id,
  name,
  url: id,
  files: files.length,
  size: total,
  loaded,
  complete,
  lastUsed: used,
  ...(projectors && { vision: files.at(-1).url }),
});

const done = () => new QuernError('engine/disposed', 'The download has ended.');

export class Models {
  #platform;

  constructor(platform) {
    this.#platform = platform;
  }

  #store(options) {
    return this.#storeOf(checkOptions('store', options));
  }

  #storeOf({ store = true }) {
    const found = this.#platform.storeOf(store);
    if (!found) throw badParam('options.store', 'must not be false here');
    return found;
  }

  /** The id of a source in the store; '' if no model of the wanted type is stored. Local files are not stored. */
  async #idOf(source, store) {
    const { source: located } = this.#platform.resolveSource(source);
    if (located.type) return (await storedOfType(store, located))?.header.id ?? '';
    const id = await idOfSource(located);
    if (!id) throw badParam('source', 'must be on a server: files of this machine are not stored');
    return id;
  }

  async list(options) {
    return (await Entry.all(this.#store(options))).map(describe).sort((a, b) => b.lastUsed - a.lastUsed);
  }

  async has(source, options) {
    const { vision, ...where } = checkOptions('has', options);
    const store = this.#storeOf(where);
    const id = await this.#idOf(source, store);
    const { source: { urls, projectors = 0 } } = resolveBoth(this.#platform, source, vision);
    return id !== '' && (await Entry.open(store, id)).has(urls, projectors);
  }

  async download(source, options) {
    const checked = checkOptions('download', options);
    const store = this.#store({ store: checked.store });
    await this.#idOf(source, store);
    const { rpc } = await startWith(this.#platform, DOWNLOAD, source, checked);
    await rpc.close(done());
    const entry = await Entry.open(store, await this.#idOf(source, store));
    if (!entry.complete) throw storageError('storage/unavailable', 'what was stored is not there');
    return describe(entry);
  }

  async remove(source, options) {
    const store = this.#store(options);
    const id = await this.#idOf(source, store);
    if (id) await (await Entry.open(store, id)).remove(PATIENCE_MS);
  }

  /** Saved conversations, without a model. */
  async saved(options) {
    return listSaved(guarded(this.#store(options)));
  }

  async forget(name, options) {
    await forgetSaved(guarded(this.#store(options)), checkName(name));
  }

  async usage(options) {
    return guarded(this.#store(options)).usage();
  }

  async persist(options) {
    return guarded(this.#store(options)).persist();
  }
}

callable(Models.prototype, ['list', 'has', 'download', 'remove', 'saved', 'forget', 'usage', 'persist']);

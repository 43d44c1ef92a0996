// SPDX-License-Identifier: MIT
// The settings and their drawer. An empty field means "as the library decides" and is not passed on at all, so
// the model card's values hold until somebody changes one. Ranges stand in the markup (min, max, step) and are
// enforced there and, for what comes back from storage, here from the same attributes.
import { byId } from './dom.js';
import { read, write } from './storage.js';

const KEY = 'quern:settings';

const SAMPLING = ['temperature', 'topP', 'topK', 'maxTokens', 'seed'];
const LOADING = ['threads', 'contextSize'];

const pick = (values, names) => Object.fromEntries(names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]));

export class Settings {
  #form = byId('settings-form');
  #switch = byId('thinking-switch');
  #values = {};
  #unsaved;

  /** @param {{onUnsaved: () => void}} events told once when settings cannot be stored */
  constructor({ onUnsaved }) {
    this.#unsaved = onUnsaved;
    this.#restore(read(KEY));
    this.#form.addEventListener('change', (event) => this.#take(event.target));
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    this.#switch.addEventListener('click', () => this.#setThinking(!this.#values.thinking));
  }

  /** Options of one reply. */
  get sampling() {
    return { ...pick(this.#values, SAMPLING), thinking: this.#values.thinking };
  }

  /** Options of the next load. */
  get loading() {
    return pick(this.#values, LOADING);
  }

  /** The system prompt, '' for none. */
  get system() {
    return this.#values.system ?? '';
  }

  reset() {
    this.#form.reset();
    this.#values = { thinking: this.#values.thinking };
    this.#save();
  }

  #restore(stored) {
    for (const field of this.#form.elements) {
      const value = stored && Object.hasOwn(stored, field.name) ? stored[field.name] : undefined;
      if (!field.name || !['string', 'number'].includes(typeof value)) continue;
      field.value = String(value).slice(0, 20000);
      if (field.checkValidity()) this.#set(field);
      else field.value = '';
    }
    this.#show(stored?.thinking === true);
  }

  #take(field) {
    if (!field.name || !field.reportValidity()) return;
    this.#set(field);
    this.#save();
  }

  #set(field) {
    const value = field.type === 'number' ? field.valueAsNumber : field.value.trim();
    this.#values[field.name] = field.value === '' ? undefined : value;
  }

  #setThinking(on) {
    this.#show(on);
    this.#save();
  }

  #show(on) {
    this.#values.thinking = on;
    this.#switch.setAttribute('aria-checked', String(on));
  }

  #save() {
    if (write(KEY, this.#values)) return;
    this.#unsaved?.();
    this.#unsaved = null;
  }
}

// SPDX-License-Identifier: MIT
// The settings and their drawer. The rule: what concerns replies (the preset: system prompt, sampling, tools, thinking)
// belongs to the conversation that is shown, which keeps what it was last used with. While a new conversation is shown,
// it belongs to all new ones, and a new one begins with that. What concerns the next load belongs to all.
// An empty field means "the library decides" and is not passed on, so the model card's values apply until the visitor
// changes one. Ranges are in the markup (min, max, and step if only whole numbers are valid). An invalid value stays in
// its field, with a line that tells the problem and the value that applies.
import { announce, byId, button, element } from './dom.js';
import { tokens } from './format.js';
import { read, write } from './storage.js';
import { joined, say } from './words.js';

const KEY = 'quern:settings';

const PRESET = ['system', 'temperature', 'topP', 'topK', 'maxTokens', 'seed', 'tools', 'thinking'];
const LOADING = ['threads', 'contextSize', 'backend'];

const pick = (values, names) =>
  Object.fromEntries(names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]));

/** The problem with a field's content, or ''. Steps of fractions are a convenience, not a rule. */
function problemOf({ validity, step, min, max }) {
  const isWhole = Number.isInteger(Number(step));
  const isFine =
    validity.valid || (validity.stepMismatch && !isWhole && !validity.rangeUnderflow && !validity.rangeOverflow);
  if (isFine) return '';
  const [from, to] = [min, max].map(Number);
  return isWhole ? say`A whole number from ${from} to ${to} is needed.` : say`A number from ${from} to ${to} is needed.`;
}

/** The value of a field; undefined: the library decides. */
function valueOf({ type, value, valueAsNumber }) {
  if (value === '') return undefined;
  return type === 'number' ? valueAsNumber : value.trim();
}

export class Settings {
  #dialog = byId('settings-dialog');
  #form = byId('settings-form');
  #switch = byId('thinking-switch');
  #values = {};           // those that are shown
  #own = {};              // the preset of new conversations
  #talk = null;           // the conversation whose preset is shown; null: a new one
  #showPresets = null;    // once they are needed
  #unsaved;
  #onOpen;

  /**
   * @param {{onUnsaved: () => void, onOpen: () => void}} events onUnsaved: called once if settings cannot be stored
   */
  constructor({ onUnsaved, onOpen }) {
    this.#unsaved = onUnsaved;
    this.#onOpen = onOpen;
    this.#restore(read(KEY));
    this.#own = this.preset;
    this.#form.addEventListener('change', (event) => this.#take(event.target));
    this.#form.addEventListener('input', ({ target }) => {
      if (target.getAttribute('aria-invalid') && !problemOf(target)) this.#take(target);
    });
    this.#dialog.addEventListener('close', () => this.#tellReset());
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    this.#switch.addEventListener('click', () => this.#setThinking(!this.#values.thinking));
  }

  /**
   * The preset of a conversation: options of a reply, `system`, and `tools` ('auto', 'required' or undefined). What no
   * field allows is left out.
   * @param {{preset: ?object}} talk null: it has none of its own
   */
  of({ preset }) {
    const { elements } = this.#form;
    const isAllowed = ([name, value]) => {
      const field = elements[name]?.cloneNode(true);
      if (!field) return false;
      field.value = value;
      return field.value === String(value) && !problemOf(field);
    };
    if (!preset) return this.#own;
    return { ...Object.fromEntries(Object.entries(preset).filter(isAllowed)), thinking: preset.thinking === true };
  }

  /**
   * Shows the preset of a conversation, and gives it what the visitor changes.
   * @param {?{preset: ?object, keep: (preset: object) => void}} talk null: a new one
   */
  show(talk) {
    const preset = talk ? this.of(talk) : this.#own;
    const isOther = !this.#has(preset);
    if (talk === this.#talk && !isOther) return;
    this.#talk = talk;
    if (isOther) this.#fill({ ...preset, ...this.loading });
    if (this.#dialog.open) this.#tellReset();
  }

  /** Whether the settings of replies are those of one conversation. */
  get isOfTalk() { return this.#talk !== null; }

  /** Whether a new conversation begins with other settings than those that are shown. */
  get differs() { return !this.#has(this.#own); }

  #has(preset) { return PRESET.every((name) => this.#values[name] === preset[name]); }

  /** Makes the preset that is shown that of new conversations, too. */
  share() {
    this.#own = this.preset;
    this.#write(Object.fromEntries(PRESET.map((name) => [name, this.#own[name]])));
  }

  /** Settings of the next load. */
  get loading() {
    return pick(this.#values, LOADING);
  }

  /** Options of the next load. */
  get options() {
    const { loading } = this;
    return loading.backend === 'fast' ? { ...loading, backend: 'auto', gpu: 'fast' } : loading;
  }

  /** The system prompt, '' for none. */
  get system() {
    return this.#values.system ?? '';
  }

  async open() {
    this.#dialog.showModal();
    this.#onOpen();
    const { showPresets } = await import('./presets.js');
    this.#showPresets = () => showPresets(this);
    this.#showPresets();
  }

  /** What a preset holds. */
  get preset() { return pick(this.#values, PRESET); }

  /** Takes over a preset. What it lacks is the model's own; options of a load stay. */
  apply(preset) {
    this.#fill({ ...preset, ...this.loading });
    this.#save(this.#values);
  }

  /**
   * Opens the drawer at the system prompt.
   * @returns {Promise<boolean>} whether the prompt has changed when the drawer is closed
   */
  async editSystem() {
    const before = this.system;
    const closed = new Promise((done) => { this.#dialog.addEventListener('close', done, { once: true }); });
    this.open();
    byId('set-system').focus();
    await closed;
    return this.system !== before;
  }

  /** Shows the context that a load got, if it differs from the setting. @param {number} size in tokens */
  tookContext(size) {
    const { contextSize } = this.#values;
    byId('context-took').textContent =
      contextSize && contextSize !== size ? say`The model in use holds ${tokens(size)} at most.` : '';
  }

  /** Empties all fields. A button brings them back, until another change or the end of the drawer. */
  reset() {
    const before = { ...this.#values };
    const undo = button(say`Undo`, () => {
      this.#restore(before);
      this.#save(before);
      byId('settings-reset').focus();
      this.#tellReset();
      announce(say`The settings are as they were.`);
    }, 'link-button');
    this.#save(this.#clear());
    this.#tellReset(say`All fields are empty, the system prompt too.`, ' ', undo);
    announce(say`All settings are reset.`);
  }

  #clear() {
    this.#form.reset();
    for (const field of this.#form.elements) this.#note(field, '');
    return Object.fromEntries([...this.#form.elements].map(({ name }) => [name, undefined]));
  }

  /** Shows values and no others. */
  #fill(values) {
    Object.assign(this.#values, this.#clear());
    this.#restore(values);
  }

  #tellReset(...said) {
    this.#showPresets?.();
    const line = byId('settings-undo');
    line.replaceChildren(...said);
    if (said.length) line.scrollIntoView({ block: 'nearest' });
  }

  #restore(stored) {
    for (const field of this.#form.elements) {
      const value = stored && Object.hasOwn(stored, field.name) ? stored[field.name] : undefined;
      if (!field.name || !['string', 'number'].includes(typeof value)) continue;
      field.value = String(value).slice(0, 20000);
      if (problemOf(field)) field.value = '';
      this.#values[field.name] = valueOf(field);
    }
    this.#show(stored?.thinking === true);
  }

  #take(field) {
    if (!field.name) return;
    const problem = problemOf(field);
    this.#note(field, problem && joined(problem, say`Until then: ${this.#values[field.name] ?? field.placeholder}.`));
    if (problem) return;
    this.#save({ [field.name]: valueOf(field) });
    this.#tellReset();
  }

  /** Shows the problem of a field in a line below it; '' removes the line. */
  #note(field, problem) {
    const id = `${field.id}-problem`;
    byId(id)?.remove();
    if (!problem) {
      for (const name of ['aria-invalid', 'aria-describedby']) field.removeAttribute(name);
      return;
    }
    field.setAttribute('aria-invalid', 'true');
    field.setAttribute('aria-describedby', id);
    field.after(element('p', { id, className: 'hint problem', role: 'alert' }, problem));
  }

  #setThinking(on) {
    this.#show(on);
    this.#save({ thinking: on });
  }

  #show(on) {
    this.#values.thinking = on;
    this.#switch.setAttribute('aria-checked', String(on));
  }

  /** Saves changes: with the conversation what belongs to it, all else for the page. */
  #save(changed) {
    Object.assign(this.#values, changed);
    if (!this.#talk) this.#own = this.preset;
    else if (PRESET.some((name) => name in changed)) this.#talk.keep(this.preset);
    const others = Object.entries(changed).filter(([name]) => !this.#talk || !PRESET.includes(name));
    this.#write(Object.fromEntries(others));
  }

  /** Stores values, and keeps those that other tabs have changed meanwhile. */
  #write(changed) {
    if (write(KEY, { ...read(KEY), ...changed })) return;
    this.#unsaved?.();
    this.#unsaved = null;
  }
}

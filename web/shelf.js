// SPDX-License-Identifier: MIT
// The model dialog: what runs now, the models the page knows by name, and the two ways to any other (an address,
// a file). Choosing a known one only fills the address field; a download starts with the Load button alone.
import { byId, button, element } from './dom.js';
import { bytes, count, oneLine, parameters } from './format.js';

export const DEMO = { source: new URL('./models/demo-q8_0.gguf', document.baseURI).href, label: 'Demo model (toy)', kind: 'demo' };

/** Published by the makers of the models. Sizes in bytes, as their repositories list them. */
export const KNOWN = [
  {
    label: 'Qwen3-0.6B', note: 'Small and quick, a good first one', size: 639e6,
    url: 'https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf',
  },
  {
    label: 'Qwen3-1.7B', note: 'Knows more, about a third of the speed', size: 1.83e9,
    url: 'https://huggingface.co/Qwen/Qwen3-1.7B-GGUF/resolve/main/Qwen3-1.7B-Q8_0.gguf',
  },
];

/** The last part of an address, to call the model by. */
function labelOf(url) {
  const name = new URL(url).pathname.split('/').pop();
  let readable = name;
  try {
    readable = decodeURIComponent(name);
  } catch {
    // Not UTF-8: shown as it stands.
  }
  return oneLine(readable.replace(/\.gguf$/i, ''), 60) || 'Model';
}

/** An address that can be fetched, or null. */
function fetchable(text) {
  const url = URL.canParse(text.trim(), document.baseURI) ? new URL(text.trim(), document.baseURI) : null;
  return url && /^https?:$/.test(url.protocol) ? url.href : null;
}

export class Shelf {
  #dialog = byId('model-dialog');
  #url = byId('model-url');
  #note = byId('url-note');
  #onChoose;

  /** @param {(choice: import('./session.js').Choice) => void} onChoose */
  constructor(onChoose) {
    this.#onChoose = onChoose;
    byId('shelf').append(
      this.#row('Demo model', 'A toy that comes with this page', 3e6, 'Load', () => this.#choose(DEMO)),
      ...KNOWN.map((known) => this.#row(known.label, known.note, known.size, 'Choose', () => this.suggest(known))),
    );
    byId('url-form').addEventListener('submit', (event) => this.#submit(event));
    this.#url.addEventListener('input', () => this.#url.setCustomValidity(''));
    byId('file-input').addEventListener('change', ({ target }) => {
      if (target.files[0]) this.chooseFile(target.files[0]);
      target.value = '';
    });
  }

  /** @param {object | null} model the model in use */
  open(model) {
    this.#facts(model?.info);
    this.#dialog.showModal();
  }

  /** Offers a known model: one more press of Load fetches it. */
  suggest(known) {
    this.prefill(known.url, known.size);
    byId('load-url').focus();
  }

  /** Puts an address into the field and says what Load would do. Nothing is fetched. */
  prefill(text, size) {
    const url = fetchable(text);
    if (!url) return;
    this.#url.value = url;
    const amount = size ? `about ${bytes(size)} ` : 'it ';
    this.#note.textContent = `Load downloads ${amount}from ${new URL(url).host} to this device.`;
    if (!this.#dialog.open) this.open(null);
  }

  chooseFile(file) {
    this.#choose({ source: file, label: oneLine(file.name.replace(/\.gguf$/i, ''), 60) || 'File', kind: 'file' });
  }

  #submit(event) {
    event.preventDefault();
    const url = fetchable(this.#url.value);
    this.#url.setCustomValidity(url && this.#url.value.trim() ? '' : 'An address starting with https:// is needed.');
    if (this.#url.reportValidity()) this.#choose({ source: url, label: labelOf(url), kind: 'url' });
  }

  #choose(choice) {
    this.#dialog.close();
    this.#onChoose(choice);
  }

  #row(label, note, size, action, onclick) {
    const act = button(action, onclick);
    act.setAttribute('aria-label', `${action} ${label}`);
    return element('li', {}, element('div', {},
      element('strong', {}, label), element('span', { className: 'size' }, bytes(size)), element('p', {}, note)), act);
  }

  #facts(info) {
    const list = byId('model-facts');
    list.hidden = !info;
    if (!info) return list.replaceChildren();
    const facts = [
      ['In use', info.name], ['Kind', info.architecture], ['Weights', info.parameters && parameters(info.parameters)],
      ['Memory', info.memory && bytes(info.memory.used)], ['Context', info.contextSize && `${count(info.contextSize)} tokens`],
      ['Threads', info.threads], ['Kernels', info.variant],
    ];
    const rows = facts.filter(([, value]) => value).map(([name, value]) => element('div', {},
      element('dt', {}, name), element('dd', {}, element('bdi', {}, oneLine(value, 80)))));
    return list.replaceChildren(...rows);
  }
}

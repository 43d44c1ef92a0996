// SPDX-License-Identifier: MIT
// The small facts around the conversation: status line, speed, use of the context, the lamp beside the model's name,
// and the mark that turns like a mill stone while the model works.
import { byId } from '../shell/dom.js';
import { speed } from '../shell/format.js';
import { say } from '../shell/words.js';

/** Milliseconds between two changes of the numbers: faster ones cannot be read, and each is a layout of its own. */
const PACE_MS = 500;

/** Words of the status line for the phases of the reply that is shown. */
const PHASES = {
  waiting: say`Waiting`, looking: say`Looking`, reading: say`Reading`, thinking: say`Thinking`, writing: say`Writing`,
};

export class Readout {
  #limit = 0;
  #used = 0;
  #pending = null;

  status(text) {
    const node = byId('status');
    if (node.textContent !== text) node.textContent = text;
  }

  phase(name) { this.status(PHASES[name]); }

  /** @param {{used?: number, tokensPerSecond?: number}} numbers shown together at the next update */
  meter(numbers) {
    if (!this.#pending) setTimeout(() => this.#show(), PACE_MS);
    this.#pending = { ...this.#pending, ...numbers };
  }

  /** @param {number} contextSize in tokens; 0 when there is no model */
  setLimit(contextSize) {
    if (contextSize === this.#limit) return;
    this.#limit = contextSize;
    byId('context').hidden = !contextSize;
    byId('speed').textContent = '';
    this.meter({ used: 0 });
  }

  /** Use of the context, in tokens. @returns {{size: number, used: number}} */
  get context() { return { size: this.#limit, used: this.#used }; }

  /** @param {'none' | 'loading' | 'ready' | 'working'} state */
  setState(state) {
    document.documentElement.dataset.state = state;
  }

  #show() {
    const { used = this.#used, tokensPerSecond } = this.#pending;
    this.#pending = null;
    this.#used = used;
    if (tokensPerSecond !== undefined) byId('speed').textContent = speed(tokensPerSecond);
    const context = byId('context');
    const share = this.#limit ? Math.min(1, used / this.#limit) : 0;
    context.setAttribute('aria-valuemax', String(this.#limit));
    context.setAttribute('aria-valuenow', String(used));
    context.classList.toggle('high', share > 0.8);
    byId('context-fill').style.width = `${share * 100}%`;
    byId('context-text').textContent = say`${used} of ${this.#limit} tokens`;
  }
}

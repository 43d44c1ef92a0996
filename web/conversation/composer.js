// SPDX-License-Identifier: MIT
// The message field: grows with its text, Enter sends, Shift+Enter breaks the line, Esc stops. Send and Stop share
// one place, and the focus goes back to the field after either.
import { byId } from '../shell/dom.js';

/** Longest text a link may put into the field. */
const MAX_PREFILL = 8000;

export class Composer {
  #input = byId('input');
  #send = byId('send');
  #stop = byId('stop');
  #editing = byId('editing');
  #actions;

  /** @param {{onSend: (text: string) => void, onResend: (text: string) => void, onStop: () => void}} actions */
  constructor(actions) {
    this.#actions = actions;
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('input', () => this.#update());
    this.#stop.addEventListener('click', () => this.#halt());
    byId('edit-cancel').addEventListener('click', () => this.#endEdit());
    addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !document.querySelector('dialog[open]')) this.#escape();
    });
    this.#update();
  }

  /** Puts a text from outside into the field, for the visitor to look at. */
  prefill(text) {
    this.#input.value = text.slice(0, MAX_PREFILL);
    this.#update();
  }

  /** The last message goes back into the field; sending replaces it. */
  edit(text) {
    this.#editing.hidden = false;
    this.#input.value = text;
    this.#update();
    this.#input.focus();
  }

  setRunning(running) {
    const held = [this.#send, this.#stop].includes(document.activeElement);
    this.#send.hidden = running;
    this.#stop.hidden = !running;
    if (held) this.#input.focus();
  }

  focus() {
    // On a touch screen a focused field opens the keyboard over half the page.
    if (matchMedia('(hover: hover)').matches) this.#input.focus();
  }

  #submit() {
    const text = this.#input.value.trim();
    if (!text || this.#send.hidden) return;
    const resend = !this.#editing.hidden;
    this.#endEdit();
    this.#actions[resend ? 'onResend' : 'onSend'](text);
    this.#input.focus();
  }

  #key(event) {
    // While an input method composes a character, Enter belongs to it (229 is what Safari sends then).
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #escape() {
    if (!this.#stop.hidden) this.#halt();
    else if (!this.#editing.hidden) this.#endEdit();
  }

  #halt() {
    this.#actions.onStop();
    this.#input.focus();
  }

  #endEdit() {
    this.#editing.hidden = true;
    this.#input.value = '';
    this.#update();
  }

  #update() {
    this.#send.disabled = this.#input.value.trim() === '';
    this.#input.style.height = 'auto';
    this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}

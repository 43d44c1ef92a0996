// SPDX-License-Identifier: MIT
// The message field: grows with its text, Enter sends, Shift+Enter breaks the line, Esc stops. Send and Stop share one place, and the
// focus goes back to the field after either. What is not sent stays with its conversation; editing an earlier message puts it aside.
import { byId } from '../shell/dom.js';
import { readDraft, writeDraft } from './drafts.js';

/** Longest text a link may put into the field. */
const MAX_PREFILL = 8000;

export class Composer {
  #input = byId('input');
  #send = byId('send');
  #stop = byId('stop');
  #editing = byId('editing');
  #actions;
  #conversation = '';
  #edited = null;   // the message that is being edited
  #aside = '';      // what stood in the field before

  /** @param {{onSend: (text: string, instead?: object) => Promise<boolean>, onStop: () => void}} actions */
  constructor(actions) {
    this.#actions = actions;
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('input', () => {
      this.#update();
      if (!this.#edited) writeDraft(this.#conversation, this.#input.value);
    });
    this.#stop.addEventListener('click', () => this.#halt());
    byId('edit-cancel').addEventListener('click', () => this.#endEdit());
    addEventListener('keydown', (event) => {
      // Beside the page the list is open and not in the way; a search field with words in it takes Esc for itself.
      const taken = document.querySelector('dialog:modal') || (event.target.type === 'search' && event.target.value);
      if (event.key === 'Escape' && !taken) this.#escape();
    });
    this.#input.value = readDraft('');
    this.#update();
  }

  /** Puts a text from outside into the field, for the visitor to look at. */
  prefill(text) {
    this.#input.value = text.slice(0, MAX_PREFILL);
    this.#update();
  }

  /** Another conversation is shown: what was typed for it comes back. */
  show(conversation) {
    if (conversation === this.#conversation) return;
    this.#conversation = conversation;
    this.#edited = null;
    this.#editing.hidden = true;
    this.#input.value = readDraft(conversation);
    this.#update();
  }

  /** A message goes back into the field; sending makes another version of it. */
  edit(message) {
    if (!this.#edited) this.#aside = this.#input.value;
    this.#edited = message;
    this.#editing.hidden = false;
    this.#input.value = message.content;
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
    const edited = this.#edited;
    if (!text || (this.#send.hidden && !edited)) return;
    if (edited) this.#endEdit();
    else this.#clear();
    this.#actions.onSend(text, edited ?? undefined).then((sent) => { if (!sent && !this.#input.value) this.prefill(text); });
    this.#input.focus();
  }

  #key(event) {
    // While an input method composes a character, Enter belongs to it (229 is what Safari sends then).
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #escape() {
    if (this.#edited) this.#endEdit();
    else if (!this.#stop.hidden) this.#halt();
  }

  #halt() {
    this.#actions.onStop();
    this.#input.focus();
  }

  #endEdit() {
    this.#edited = null;
    this.#editing.hidden = true;
    this.#input.value = this.#aside;
    this.#update();
  }

  #clear() {
    writeDraft(this.#conversation, '');
    this.#input.value = '';
    this.#update();
  }

  #update() {
    this.#send.disabled = this.#input.value.trim() === '';
    this.#input.style.height = 'auto';
    if (this.#input.value) this.#input.style.height = `${this.#input.scrollHeight}px`;    // asking makes the browser lay everything out
  }
}

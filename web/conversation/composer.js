// SPDX-License-Identifier: MIT
// The message field: grows with its text. Enter sends, Shift+Enter makes a new line, Esc stops. Send and Stop share one
// place, and either returns the focus to the field. An unsent text stays with its conversation; while an earlier
// message is edited it is put aside.
import { mediumOf } from '../message/media.js';
import { byId, isComposed } from '../shell/dom.js';
import { readDraft, writeDraft } from './drafts.js';
import { pickFiles } from './files.js';
import { Images } from './images.js';

/** Longest text that a link may put into the field. */
const MAX_PREFILL = 8000;

export class Composer {
  #input = byId('input');
  #send = byId('send');
  #stop = byId('stop');
  #editing = byId('editing');
  #actions;
  #conversation = '';
  #edited = null;   // the message that is being edited
  #aside = null;    // the field's content before the edit
  #unsent = new Map();    // images of conversations that are not shown
  #images;
  #archive = null;        // stores these images

  /**
   * @param {object} actions
   * @param {(question: {content: string, media: object[]}, instead?: object) => Promise<boolean>} actions.onSend
   * @param {() => void} actions.onStop
   * @param {() => boolean} actions.mayShow whether the model can read images; tells the reason if not
   * @param {(medium: object) => Promise<number>} actions.costOf tokens of an image
   * @param {(sentence: string) => void} actions.onRefuse
   */
  constructor(actions) {
    this.#actions = actions;
    this.#images = new Images({
      onChange: () => this.#update(),
      onPick: () => this.#keep(),
      costOf: actions.costOf,
      onRefuse: actions.onRefuse,
    });
    byId('attach').addEventListener('click', () => this.#pick('image/*,video/*'));
    byId('camera').addEventListener('click', () => this.#pick('image/*', { capture: 'environment' }));
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('paste', (event) => {
      const { types, files } = event.clipboardData;
      if (!types.includes('text/plain') && this.attach(files)) event.preventDefault();
    });
    this.#input.addEventListener('input', () => {
      this.#update();
      if (!this.#edited) writeDraft(this.#conversation, this.#input.value);
    });
    this.#stop.addEventListener('click', () => this.#halt());
    byId('edit-cancel').addEventListener('click', () => this.#endEdit());
    addEventListener('keydown', (event) => {
      // The wide layout's list is no modal dialog and does not count; a search field with a text uses Esc itself.
      const taken =
        isComposed(event) ||
        document.querySelector('dialog:modal') ||
        (event.target.type === 'search' && event.target.value);
      if (event.key === 'Escape' && !taken) this.#escape();
    });
    this.#input.value = readDraft('');
    this.#update();
  }

  /** Puts a text from a link into the field, below the present text. The visitor decides whether to send it. */
  prefill(text) {
    const { value } = this.#input;
    const added = text.slice(0, MAX_PREFILL);
    if (!value.includes(added)) this.#input.value = [value, added].filter(Boolean).join('\n\n');
    this.#update();
  }

  /** Shows the field of another conversation, with its unsent text. */
  show(conversation) {
    if (conversation === this.#conversation) return;
    this.#unsent.set(this.#conversation, this.#edited ? this.#aside.media : this.#images.media);
    this.#conversation = conversation;
    this.#edited = null;
    this.#editing.hidden = true;
    this.#fill(readDraft(conversation), this.#unsent.get(conversation));
    this.#recall();
  }

  /** Sets the store for the images of unsent messages. @param {import('./archive.js').Archive} archive */
  keepIn(archive) {
    this.#archive = archive;
    this.#recall();
  }

  /** @param {Iterable<File>} files @returns {boolean} whether any of them is an image or a video */
  attach(files) {
    const media = [...files].map(mediumOf).filter(Boolean);
    if (media.length && this.#actions.mayShow()) this.#images.add(media);
    return media.length > 0;
  }

  /** Puts a message back into the field, or an edited form of it. Sending adds another version of the message. */
  edit(message, { content, media } = message) {
    if (!this.#edited) this.#aside = { text: this.#input.value, media: this.#images.media };
    this.#edited = message;
    this.#editing.hidden = false;
    this.#fill(content, media);
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

  async #submit() {
    const content = this.#input.value.trim();
    const { media } = this.#images;
    const edited = this.#edited;
    const conversation = this.#conversation;
    if (this.#isEmpty || (this.#send.hidden && !edited)) return;
    if (edited) this.#endEdit();
    else this.#clear();
    this.#input.focus();
    let sent = false;
    try {
      sent = await this.#actions.onSend({ content, media }, edited ?? undefined);
    } finally {
      if (!sent) this.#giveBack(conversation, edited, { content, media });
    }
  }

  /**
   * Returns a message that could not be sent to the field, or to its conversation if another one is shown, unless there
   * is newer text.
   */
  #giveBack(conversation, edited, { content, media }) {
    const isShown = conversation === this.#conversation;
    if (isShown && edited && !this.#edited) return this.edit(edited, { content, media });
    if (isShown ? !this.#isEmpty : readDraft(conversation)) return undefined;
    writeDraft(conversation, content);
    if (isShown) this.#fill(content, media);
    else this.#unsent.set(conversation, media);
    return media.length ? this.#keep(conversation, media) : undefined;
  }

  get #isEmpty() { return this.#input.value.trim() === '' && this.#images.media.length === 0; }

  async #pick(...which) {
    if (this.#actions.mayShow()) this.attach(await pickFiles(...which));
    this.#input.focus();
  }

  #fill(text, media = []) {
    this.#input.value = text;
    this.#images.set(media);
  }

  #key(event) {
    if (event.key !== 'Enter' || event.shiftKey || isComposed(event)) return;
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
    this.#fill(this.#aside.text, this.#aside.media);
  }

  #clear() {
    const { length } = this.#images.media;
    writeDraft(this.#conversation, '');
    this.#fill('');
    if (length) this.#keep();
  }

  #keep(conversation = this.#conversation, media = this.#images.media) {
    if (!this.#edited) this.#archive?.keepUnsent(conversation, media).catch(() => {});
  }

  /** Restores the images that were attached before the page was loaded. */
  async #recall() {
    const id = this.#conversation;
    if (!this.#archive || this.#unsent.has(id)) return;
    const media = await this.#archive.unsent(id).catch(() => []);
    if (media.length && id === this.#conversation && !this.#edited && !this.#images.media.length)
      this.#images.set(media);
  }

  #update() {
    this.#send.disabled = this.#isEmpty;
    this.#input.style.height = 'auto';
    // reading the height makes the browser lay out the page
    if (this.#input.value) this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}

// SPDX-License-Identifier: MIT
// The message field: grows with its text. Enter sends, Shift+Enter makes a new line. Where fingers type,
// Enter makes a new line too, since their keyboards have no Shift+Enter; Ctrl+Enter sends everywhere. Send and Stop
// share one place, and either returns the focus to the field. An unsent text stays with its conversation; while an
// earlier message is edited it is put aside.
import { mediumOf } from '../message/media.js';
import { byId, element, iconButton, isComposed } from '../shell/dom.js';
import { oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';
import { readDraft, writeDraft } from './drafts.js';
import { pickFiles } from './files.js';
import { Attached } from './attached.js';

/** Longest text that a link may put into the field. */
const MAX_PREFILL = 8000;

/** A pasted text longer than this becomes a part of the message, as a file does. */
const LONG_PASTE = 4000;

const documents = () => import('./documents.js');

/** @param {import('./attached.js').Parts} parts */
const hasAny = ({ media, texts }) => media.length + texts.length > 0;

const TOUCH = matchMedia('(pointer: coarse)');

export class Composer {
  #input = byId('input');
  #send = byId('send');
  #stop = byId('stop');
  #editing = byId('editing');
  #actions;
  #conversation = '';
  #edited = null;   // the message that is being edited
  #aside = null;    // the field's content before the edit
  #unsent = new Map();    // attached parts of conversations that are not shown
  #queue = [];      // the waiting questions that are shown
  #attached;
  #archive = null;        // stores these parts

  /**
   * @param {object} actions
   * @param {(question: {content: string, media: object[], texts: object[]}, instead?: object) => Promise<boolean>}
   *   actions.onSend
   * @param {() => void} actions.onStop
   * @param {(message: ?object) => void} actions.onEditing this message is being edited
   * @param {() => boolean} actions.mayShow whether the model can read images; tells the reason if not
   * @param {(part: object) => Promise<number>} actions.costOf tokens of an image or a text
   * @param {(sentence: string) => void} actions.onRefuse
   * @param {(sentence: string, actions?: HTMLElement[]) => void} actions.onAdvice about texts that are too long; '' if
   *   they are not
   * @param {() => {size: number, used: number}} actions.context in tokens
   * @param {import('../model/session.js').Session} actions.session
   * @param {(files: File[]) => void} actions.onModels files that are models
   */
  constructor(actions) {
    this.#actions = actions;
    this.#attached = new Attached({
      onChange: () => this.#update(),
      onPick: () => this.#keep(),
      costOf: actions.costOf,
      onRefuse: actions.onRefuse,
      onTokens: (tokens) => this.#advise(tokens),
      onText: (text) => this.#insert(text),
    });
    byId('attach').addEventListener('click', () => this.#pick(''));
    byId('camera').addEventListener('click', () => {
      if (actions.mayShow()) this.#pick('image/*', { capture: 'environment' });
    });
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('paste', (event) => this.#paste(event));
    this.#input.addEventListener('input', () => {
      this.#update();
      if (!this.#edited) writeDraft(this.#conversation, this.#input.value);
    });
    this.#stop.addEventListener('click', () => this.#halt());
    byId('edit-cancel').addEventListener('click', () => this.#endEdit());
    if (TOUCH.matches) this.#input.enterKeyHint = 'enter';
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
    this.#unsent.set(this.#conversation, this.#edited ? this.#aside.parts : this.#attached.parts);
    this.#conversation = conversation;
    this.#setEdited(null);
    this.#fill(readDraft(conversation), this.#unsent.get(conversation));
    this.#recall();
  }

  /** Sets the store for the parts of unsent messages. @param {import('./archive.js').Archive} archive */
  keepIn(archive) {
    this.#archive = archive;
    this.#recall();
  }

  /** Takes files: images, videos and texts for the message, and models for their loader. @param {Iterable<File>} files */
  async attach(files) {
    const all = [...files];
    const media = all.map(mediumOf).filter(Boolean);
    if (media.length && this.#actions.mayShow()) this.#attached.add(media);
    const rest = all.filter((file) => !mediumOf(file));
    if (!rest.length) return;
    const conversation = this.#conversation;
    const { readDocument, sortFiles } = await documents();
    const { models, others } = await sortFiles(rest);
    if (models.length) this.#actions.onModels(models);
    for (const file of others) {
      const found = await readDocument(file).catch(({ message }) => this.#actions.onRefuse(message));
      if (!found) continue;
      if (conversation === this.#conversation) this.#attached.addText(found.text, found.name);
      else this.#actions.onRefuse(say`${found.name} was read for another conversation; add it again.`);
    }
  }

  /**
   * Shows the questions that wait for the end of a reply. Each can be taken back into the field.
   * @param {object[]} queue which shrinks then
   */
  showQueue(queue) {
    if (queue.length === this.#queue.length && queue.every((one, i) => one === this.#queue[i])) return;
    this.#queue = [...queue];
    const list = byId('queued');
    const shown = queue.map((question) => {
      const text = question.content || say`Files`;
      const back = iconButton('close', say`Do not send this`, () => {
        queue.splice(queue.indexOf(question), 1);
        this.showQueue(queue);
        this.giveBack(this.#conversation, question);
      });
      return element('li', {}, element('span', {}, say`Next: ${oneLine(text, 200)}`), back);
    });
    list.replaceChildren(...shown);
    list.hidden = !queue.length;
  }

  /** Puts a question that was not asked into the field of its conversation, below what is there. */
  giveBack(conversation, { content, ...parts }) {
    const isShown = conversation === this.#conversation && !this.#edited;
    const there = isShown ? this.#input.value : readDraft(conversation);
    const text = [there, content].filter(Boolean).join('\n\n');
    writeDraft(conversation, text);
    const { media = [], texts = [] } = (isShown ? this.#attached.parts : this.#unsent.get(conversation)) ?? {};
    const all = { media: [...media, ...parts.media ?? []], texts: [...texts, ...parts.texts ?? []] };
    if (isShown) this.#fill(text, all);
    else this.#unsent.set(conversation, all);
    if (hasAny(all)) this.#keep(conversation, all);
    if (isShown) this.#input.focus();
  }

  /** Counts the tokens of what is attached, because another model is in use. */
  modelChanged() {
    this.#attached.recount();
  }

  /** Puts a message back into the field, or an edited form of it. Sending adds another version of the message. */
  edit(message, { content, media, texts } = message) {
    if (!this.#edited) this.#aside = { text: this.#input.value, parts: this.#attached.parts };
    this.#setEdited(message);
    this.#fill(content, { media, texts: texts?.map(({ name, text }) => ({ name, text })) });
    this.#input.focus();
  }

  /** Ends the edit, or else the reply. @returns {boolean} whether there was one */
  escape() {
    const isRunning = !this.#stop.hidden;
    if (this.#edited) this.#endEdit();
    else if (isRunning) this.#halt();
    else return false;
    return true;
  }

  /** Whether the field waits for a new message, without any part of it. */
  get isFree() { return !this.#edited && this.#input.value === '' && this.#attached.isEmpty; }

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
    const { parts } = this.#attached;
    const edited = this.#edited;
    const conversation = this.#conversation;
    if (this.#isEmpty) return;
    if (edited) this.#endEdit();
    else this.#clear();
    this.#input.focus();
    let sent = false;
    try {
      const { media, texts: all } = parts;
      const texts = all.length ? await (await documents()).fit(all, content, conversation, this.#actions) : all;
      if (texts && conversation === this.#conversation)
        sent = await this.#actions.onSend({ content, media, texts }, edited ?? undefined);
    } finally {
      if (!sent) this.#giveBack(conversation, edited, content, parts);
    }
  }

  /**
   * Returns a message that could not be sent to the field, or to its conversation if another one is shown, unless there
   * is newer text.
   */
  #giveBack(conversation, edited, content, parts) {
    const isShown = conversation === this.#conversation;
    if (isShown && edited && !this.#edited) return this.edit(edited, { content, ...parts });
    if (isShown ? !this.#isEmpty : readDraft(conversation)) return undefined;
    writeDraft(conversation, content);
    if (isShown) this.#fill(content, parts);
    else this.#unsent.set(conversation, parts);
    return hasAny(parts) ? this.#keep(conversation, parts) : undefined;
  }

  get #isEmpty() { return this.#input.value.trim() === '' && this.#attached.isEmpty; }

  async #pick(...which) {
    this.attach(await pickFiles(...which));
    this.#input.focus();
  }

  /** Files become parts of the message. Beside a text, an image is only a picture of it, as of a table's cells. */
  #paste(event) {
    const { types, files } = event.clipboardData;
    const text = event.clipboardData.getData('text/plain');
    const isFile = files.length > 0 && (!types.includes('text/plain') || ![...files].every(mediumOf));
    if (!isFile && text.length <= LONG_PASTE) return;
    event.preventDefault();
    if (isFile) this.attach(files);
    else this.#attached.addText(text.replaceAll(/\r\n?/g, '\n'));
  }

  /** Puts a text where the cursor is. */
  #insert(text) {
    this.#input.setRangeText(text, this.#input.selectionStart, this.#input.selectionEnd, 'end');
    this.#input.dispatchEvent(new Event('input'));
    this.#input.focus();
  }

  async #advise(tokens) {
    if (tokens) (await documents()).advise(tokens, this.#actions);
    else this.#actions.onAdvice('');
  }

  #fill(text, parts) {
    this.#input.value = text;
    this.#attached.set(parts);
  }

  #key(event) {
    const isSend = event.ctrlKey || event.metaKey || !(event.shiftKey || TOUCH.matches);
    if (event.key !== 'Enter' || !isSend || isComposed(event)) return;
    event.preventDefault();
    this.#submit();
  }

  #halt() {
    this.#actions.onStop();
    this.#input.focus();
  }

  #setEdited(message) {
    this.#edited = message;
    this.#editing.hidden = !message;
    this.#actions.onEditing(message);
  }

  #endEdit() {
    this.#setEdited(null);
    this.#fill(this.#aside.text, this.#aside.parts);
  }

  #clear() {
    const { isEmpty } = this.#attached;
    writeDraft(this.#conversation, '');
    this.#fill('');
    if (!isEmpty) this.#keep();
  }

  #keep(conversation = this.#conversation, parts = this.#attached.parts) {
    if (!this.#edited) this.#archive?.keepUnsent(conversation, parts).catch(() => {});
  }

  /** Restores the parts that were attached before the page was loaded. */
  async #recall() {
    const id = this.#conversation;
    if (!this.#archive || this.#unsent.has(id)) return;
    const parts = await this.#archive.unsent(id).catch(() => ({}));
    if (id === this.#conversation && !this.#edited && this.#attached.isEmpty) this.#attached.set(parts);
  }

  #update() {
    this.#send.disabled = this.#isEmpty;
    this.#input.style.height = 'auto';
    // reading the height makes the browser lay out the page
    if (this.#input.value) this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}

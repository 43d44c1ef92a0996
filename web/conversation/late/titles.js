// SPDX-License-Identifier: MIT
// Titles that the model makes, when it has nothing else to do: after the first reply of a conversation, while no reply
// is written or waits and the page is seen. Until then, and if none can be made, the first words of the question are
// the title. The model reads the first question and its reply, which it knows already, with the same tools, in the
// background: the library lets other replies begin first and forgets the background's positions first, so the
// conversation stays known. Another model would have to read all, so it makes none. What the visitor sends ends it at
// once. A title that the visitor wrote is never changed.
import { oneLine } from '../../shell/format.js';
import { withTools } from '../../message/tools.js';
import { promptOf } from '../prompt.js';
import { sceneOf } from '../scene.js';

/** The page is left alone for this long before a title is made. */
const REST_MS = 2000;

/** A conversation with more messages keeps the title it has. */
const MOST_MESSAGES = 6;

const MOST_WORDS = 6;
const MOST_LETTERS = 60;

const REQUEST = 'Give this conversation a title of at most six words, in its language. Answer with the title only.';

/** Options of the reply that is the title. */
const HOW = { thinking: false, temperature: 0, maxTokens: 32, stop: ['\n'], priority: 'background' };

/** What a model says as a title; '' if that is none. */
export function titleIn(said) {
  const line = oneLine(said.trim().split('\n')[0], 200)
    .replace(/^\**(?:title|titel|titre|título|titolo|заголовок|标题|標題|タイトル|제목)\s*[:：]\s*/iu, '')
    .replaceAll(/^[\s"'“”„‘’«»「」『』*#_`-]+|[\s"'“”„‘’«»「」『』*_`.。-]+$/gu, '');
  const title = oneLine(line.split(/\s+/).slice(0, MOST_WORDS).join(' '), MOST_LETTERS);
  return /\p{L}/u.test(title) ? title : '';
}

/** Whether a conversation has the title of its first words, and a first reply. */
const isUntitled = ({ entry, path, isUnsaved }) =>
  entry && !entry.named && !entry.titled && !isUnsaved && path.length > 1 && path.length <= MOST_MESSAGES;

export class Titles {
  #talks;
  #session;
  #settings;
  #log;
  #archive;
  #wanted = new Map();    // conversation without a title -> the model that knows it
  #abort = null;          // of the title that is being made
  #timer = 0;

  /**
   * @param {import('../talks.js').Talks} talks
   * @param {import('../../model/session.js').Session} session
   * @param {import('../../shell/settings.js').Settings} settings
   * @param {import('../log.js').Log} log
   * @param {import('../archive.js').Archive} archive
   */
  constructor(talks, session, settings, log, archive) {
    this.#log = log;
    this.#archive = archive;
    this.#talks = talks;
    this.#session = session;
    this.#settings = settings;
    document.addEventListener('visibilitychange', () => this.#soon());
  }

  /** Makes a title for a conversation when there is time. @param {import('../talk.js').Talk} talk */
  want(talk) {
    this.#wanted.set(talk, this.#session.model);
    this.#soon();
  }

  /** Ends the making of a title at once; it is begun again when there is time. */
  stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  get #isIdle() {
    const { model, isLoading } = this.#session;
    return Boolean(model) && !isLoading && !document.hidden && !this.#talks.running.length && !this.#abort;
  }

  #soon() {
    clearTimeout(this.#timer);
    if (this.#wanted.size && !document.hidden) this.#timer = setTimeout(() => this.#make(), REST_MS);
  }

  /** The next conversation that needs a title and is known; others are forgotten. */
  #next() {
    for (const [talk, model] of this.#wanted)
      if (model !== this.#session.model || !isUntitled(talk)) this.#wanted.delete(talk);
    return [...this.#wanted.keys()].at(0);
  }

  async #make() {
    if (!this.#isIdle) return;      // the end of the reply that is written asks again
    const talk = this.#next();
    if (!talk) return;
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    try {
      const title = await this.#archive.isDeleted(talk.id) ? '' : await this.#ask(talk, signal);
      this.#wanted.delete(talk);
      if (title) talk.entitle(title);
    } catch {
      if (!signal.aborted) this.#wanted.delete(talk);     // it keeps its first words
    } finally {
      this.#abort = null;
      this.#soon();
    }
  }

  async #ask(talk, signal) {
    const { model } = this.#session;
    const first = { path: talk.path.slice(0, 2), run: null };
    const { system, tools: wanted } = this.#settings.of(talk);
    const tools = wanted ? (await withTools()).listOf(model, sceneOf(talk, this.#log, this.#session)) : [];
    const messages = promptOf(first, { system, sees: Boolean(model.info.vision) });
    const reply = model.chat([...messages, { role: 'user', content: REQUEST }],
      { ...(tools.length && { tools, toolChoice: 'none' }), ...HOW, signal });
    const { text } = await reply.result;
    return titleIn(text);
  }
}

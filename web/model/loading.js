// SPDX-License-Identifier: MIT
// Loads as a visitor sees them: progress, pausing, remedies after a failure, and the question whether a load may end a
// reply. The address of the model in use is remembered. The next visit loads that model if all of it is on this device,
// and says so if not. A download that a reload ends is remembered, too: a card offers to resume it.
import { models } from 'quern';
import { button } from '../shell/dom.js';
import { codeOf, isAbort, mayHelpAgain } from '../shell/failure.js';
import { oneLine, tokens } from '../shell/format.js';
import { read, write } from '../shell/storage.js';
import { plural, say } from '../shell/words.js';
import { accessFor, tokenForm } from './access.js';
import { place, readAddress } from './address.js';
import { findCopy, findStored } from './stored.js';
import { DEMO, UNKNOWN, findKnown, verdict } from './known.js';

/** @typedef {import('./session.js').Choice} Choice */

const KEY_USED = 'quern:model';
const KEY_COMING = 'quern:download';

/** A model is stored completely this long after it is loaded, in ms, if there is room. */
const SETTLE_MS = 1000;

/** The part of a choice that is remembered; of a file only that it was one. */
const essence = ({ source, vision, label, kind }) => ({
  label,
  kind,
  source: kind === 'url' ? place(source) : '',
  ...(kind === 'url' && typeof vision === 'string' && { vision: place(vision) }),
});

/** @returns {Choice | null} a remembered choice */
function remembered(key) {
  const { source, vision, label, kind } = read(key) ?? {};
  if (typeof label !== 'string' || typeof source !== 'string' || !['url', 'file'].includes(kind)) return null;
  const { url } = readAddress(source);
  if (kind === 'url' && !url) return null;
  const beside = typeof vision === 'string' ? readAddress(vision).url : '';
  return {
    source: url,
    ...(beside && { vision: beside }),
    label: oneLine(label, 60),
    kind,
    sha256: findKnown(url)?.one.sha256,
  };
}

export class Loading {
  #session;
  #tray;
  #events;
  #onProgress = null;

  /**
   * @param {import('./session.js').Session} session
   * @param {import('../shell/tray.js').Tray} tray
   * @param {object} events
   * @param {() => object} events.options options of the next load, from the settings
   * @param {() => number} events.running number of replies that the model in use is writing
   * @param {(choice: Choice) => void} events.onStart
   * @param {(choice: Choice) => void} events.onLoad the model is ready
   * @param {() => void} events.onChoose the visitor wants to choose another model
   */
  constructor(session, tray, events) {
    this.#session = session;
    this.#tray = tray;
    this.#events = events;
  }

  /**
   * The first load of a visit.
   * @param {Promise<void>} prepared must be done before the load
   * @param {Promise<{times: number, heavy: boolean}>} ending how the last visit ended (life.js)
   */
  start(prepared, ending) {
    const last = remembered(KEY_USED);
    this.#offerComing();
    return this.#run(last ? this.#first(last, ending) : DEMO, prepared);
  }

  /** @param {Choice} choice */
  async load(choice) {
    const running = this.#events.running();
    return running ? this.#ask(choice, running) : this.#run(choice);
  }

  progress(progress) {
    this.#onProgress?.(progress);
  }

  async #first(last, ending) {
    const [copy, { times, heavy }] = await Promise.all([last.kind === 'url' ? findStored(last.source) : null, ending]);
    const ended = times > 0 && heavy;
    if (copy?.complete && !ended) return { ...last, source: copy.url };
    const offer = copy?.complete ? button(say`Load it`, () => this.load({ ...last, source: copy.url }))
      : button(say`Choose a model`, this.#events.onChoose);
    this.#tray.notice('last', this.#whyToy(last, copy), [offer], () => write(KEY_USED, null));
    return DEMO;
  }

  /** Says why the model of the last visit is not used. */
  #whyToy({ label, kind }, copy) {
    if (copy?.complete) return say`The built-in toy answers now: ${label} was not loaded again by itself.`;
    if (kind === 'file') return say`The built-in toy answers now: ${label} came from a file, which has to be chosen again.`;
    if (copy) return say`The built-in toy answers now: ${label} is not complete on this device.`;
    return say`The built-in toy answers now: ${label} is not stored on this device.`;
  }

  /** Offers to resume a download that the last visit has not finished. */
  async #offerComing() {
    const coming = remembered(KEY_COMING);
    const copy = coming && await findStored(coming.source);
    if (copy && !copy.complete && copy.loaded) this.#offer('download', { ...coming, source: copy.url }, copy);
  }

  #offer(subject, choice, copy) {
    const onCancel = () => {
      this.#tray.remove(subject);
      write(KEY_COMING, null);
    };
    this.#tray.paused(subject, choice.label, copy, { onResume: () => this.load(choice), onCancel });
  }

  #ask(choice, running) {
    const anyway = button(say`Load it now`, () => this.#run(choice), 'button primary');
    const later = button(say`Not now`, () => this.#tray.remove('load'));
    const sentence = plural(
      running,
      'A reply is being written; loading {2} ends it.',
      '{1} replies are being written; loading {2} ends them.',
      choice.label,
    );
    this.#tray.notice('load', sentence, [anyway, later]);
  }

  /** @param {Choice | Promise<Choice>} coming */
  async #run(coming, prepared) {
    const job = { choice: DEMO, paused: false };
    const begin = (choice) => {
      job.choice = choice;
      this.#begin(job);
      return choice;
    };
    try {
      await this.#session.open(Promise.resolve(coming).then(begin), (choice) => this.#options(choice), prepared);
      this.#tray.remove('load');
      this.#arrived(job.choice, prepared !== undefined);
    } catch (error) {
      if (this.#session.isLoading) return;
      this.#tray.remove('load');
      if (!isAbort(error)) this.#tray.error('load', error, this.#remedies(job.choice, error));
      else if (job.paused) await this.#showPaused(job.choice);
      else write(KEY_COMING, null);
    }
  }

  #begin(job) {
    const { choice } = job;
    const isDownload = choice.kind === 'url';
    const onCancel = () => this.#session.cancel();
    const onPause = () => {
      job.paused = true;
      onCancel();
    };
    if (isDownload) {
      this.#tray.remove('download');
      write(KEY_COMING, essence(choice));
    }
    this.#events.onStart(choice);
    const show = this.#tray.progress('load', choice.label, { onCancel, onPause: isDownload ? onPause : undefined });
    let weighed = 0;
    this.#tray.remove('device');
    this.#onProgress = (progress) => {
      show(progress);
      if (progress.total > weighed && choice.kind !== 'demo') this.#weigh(choice, (weighed = progress.total));
    };
  }

  /** Says, as soon as the size is known, if the model is too much for this device, in the words of the dialog. */
  #weigh({ label, source }, size) {
    const { known = UNKNOWN, one = { size } } = findKnown(source) ?? {};
    const { isMuch, text } = verdict(known, one);
    if (isMuch) this.#tray.notice('device', say`${label}: ${text}`);
  }

  #arrived(choice, isFirst) {
    if (choice.kind === 'url') write(KEY_COMING, null);
    if (choice.kind !== 'demo') this.#tray.remove('last');
    if (!isFirst) this.remember();
    this.#events.onLoad(choice);
    if (this.#session.model.info.pooling > 0)
      this.#tray.notice('load', say`${choice.label} is for searching in documents; it does not chat.`);
    this.#tray.remove('room');
    if (choice.kind === 'url') this.#checkStored(choice);
  }

  /** Remembers the model in use for the next visit. */
  remember() {
    const { choice } = this.#session;
    write(KEY_USED, choice.kind === 'demo' ? null : essence(choice));
  }

  /** Says if there was no room to store the model in use. Where nothing can be stored at all, the dialog says so. */
  async #checkStored(choice) {
    const isMissing = async () => {
      const found = await models.list().catch(() => null);
      return found && !findCopy(found, choice.source)?.complete;
    };
    if (!await isMissing()) return;
    await new Promise((done) => { setTimeout(done, SETTLE_MS); });
    if (this.#session.choice !== choice || !await isMissing()) return;
    const free = button(say`Free some space`, this.#events.onChoose);
    const sentence = say`${choice.label} is in use, but there was no room to store it: the next visit downloads it again.`;
    this.#tray.notice('room', sentence, [free]);
  }

  /** Options of a load. The demo model is not stored, since the service worker keeps it with the page. */
  #options({ kind, source, vision, sha256, contextSize }) {
    return {
      ...this.#events.options(),
      ...accessFor(source),
      ...(contextSize && { contextSize }),
      ...(kind === 'demo' && { store: false }),
      ...(vision && { vision }),
      ...(sha256 && { sha256 }),
    };
  }

  async #showPaused(choice) {
    const copy = await findStored(choice.source);
    if (!this.#session.isLoading) this.#offer('load', choice, copy);
  }

  /** Buttons that may help after a failure. */
  #remedies(choice, error) {
    const { status, contextSize } = error.detail ?? {};
    const again = button(say`Try again`, () => this.load(choice));
    const another = button(say`Choose another`, this.#events.onChoose);
    if (codeOf(error) === 'net/http' && [401, 403].includes(status))
      return [tokenForm(choice.source, () => this.load(choice))];
    if (codeOf(error) === 'mem/plan' && contextSize > 0) {
      return [button(say`Load with ${tokens(contextSize)}`, () => this.load({ ...choice, contextSize })), another];
    }
    return [choice.kind === 'demo' || mayHelpAgain(error) ? again : another];
  }
}

// SPDX-License-Identifier: MIT
// The chat page: puts its parts together. It uses the library as any page would, by its public entry alone.
// Order at the start: isolation, which may load the page once more, then the model that was used last if it is here, or the demo model,
// which comes with the page and so needs nobody's leave.
import { QuernError, support } from 'quern';
import { Chat } from './conversation/chat.js';
import { Composer } from './conversation/composer.js';
import { acceptDrops } from './shell/drop.js';
import { byId, button, element } from './shell/dom.js';
import { codeOf } from './shell/failure.js';
import { bytes, oneLine } from './shell/format.js';
import { DEMO, firstOffer } from './model/known.js';
import { Life } from './shell/life.js';
import { Loading } from './model/loading.js';
import { startOffline } from './shell/offline.js';
import { Readout } from './conversation/readout.js';
import { followEnd } from './conversation/scroll.js';
import { Session } from './model/session.js';
import { Settings } from './shell/settings.js';
import { Shelf } from './model/shelf.js';
import { themeSwitch } from './shell/theme.js';
import { Tray } from './shell/tray.js';

/** What the demo model answers well (examples/demo-model). */
const SUGGESTIONS = ['What is quern?', 'What is 27 + 45?', 'What is the capital of Kenya?', 'Tell me a story about an owl and a golden key.'];

class App {
  #tray = new Tray();
  #readout = new Readout();
  #settings = new Settings({ onUnsaved: () => this.#unsaved() });
  #session = new Session({
    onProgress: (progress) => this.#loading.progress(progress),
    onChange: () => this.#modelChanged(),
    beforeSwap: () => this.#chat.stop(),
  });
  #chat;
  #composer;
  #loading = new Loading(this.#session, this.#tray, {
    options: () => this.#settings.loading,
    isBusy: () => this.#chat.isRunning && this.#session.model !== null,
    onStart: ({ kind }) => this.#life.carry(kind !== 'demo'),
    onLoad: (choice) => this.#welcomeModel(choice),
    onChoose: () => this.#shelf.open(),
  });
  #shelf = new Shelf(this.#session, (choice) => this.#loading.load(choice));
  #life = new Life();
  #toEnd = followEnd();

  constructor() {
    this.#composer = new Composer({
      onSend: (text) => this.#send(text),
      onResend: (text) => this.#resend(text),
      onStop: () => this.#chat.stop(),
    });
    this.#chat = new Chat(this.#session, this.#settings, {
      onChange: () => this.#chatChanged(),
      onMeter: (numbers) => this.#readout.meter(numbers),
      onStatus: (text) => this.#readout.status(text),
      onEdit: (text) => this.#composer.edit(text),
      onFailure: (error) => this.#remedy(error),
      onUnsaved: () => this.#unsaved(),
    });
    this.#suggest();
    this.#wire();
    this.#chatChanged();
    this.#modelChanged();
    this.#followLink();
    this.#composer.focus();
  }

  start() {
    const ending = this.#life.begin();
    ending.then((what) => this.#tellEnding(what));
    return this.#loading.start(this.#prepare(), ending);
  }

  /** What the browser has done to the page before, and what may help. No large model loads by itself after that, so it cannot happen for ever. */
  #tellEnding({ times, heavy }) {
    if (times === 0) return;
    const again = times > 1 && heavy;
    const kept = this.#chat.isEmpty ? '' : ' The conversation is as it was last saved.';
    const advice = again ? ' That was twice in a row: a smaller model, or a smaller context in the settings, needs less.' : '';
    const choose = button(again ? 'Choose a smaller model' : 'Choose a model', () => this.#shelf.open());
    this.#tray.notice('life', `The browser closed this page, most likely to save memory.${kept}${advice}`, heavy ? [choose] : []);
  }

  /** What comes before the first load; never ends when the page is about to be loaded again. */
  async #prepare() {
    const able = support();
    const reloading = await startOffline(able.variant, {
      onWait: () => this.#readout.status('Preparing the page for its first use…'),
      onUpdate: (reload) => this.#tray.notice('update', 'A newer version of this page is ready.', [button('Use it', reload)]),
    });
    if (reloading) await new Promise(() => {});
    if (!able.ok) throw new QuernError('env/simd', able.reason);
  }

  #send(text) {
    this.#toEnd();
    return this.#chat.send(text);
  }

  #resend(text) {
    this.#toEnd();
    return this.#chat.resend(text);
  }

  #suggest() {
    byId('chips').append(...SUGGESTIONS.map((text) => element('li', {}, button(text, () => this.#send(text), 'chip'))));
  }

  #wire() {
    const offer = firstOffer();
    byId('get-real').textContent = `Get a real one: ${offer.known.label}, ${bytes(offer.one.size)}`;
    const on = (id, action) => byId(id).addEventListener('click', action);
    on('model-button', () => this.#shelf.open());
    on('get-real', () => this.#shelf.suggest(offer.one));
    on('new-chat', async () => {
      await this.#chat.reset();
      this.#composer.focus();
    });
    on('settings', () => this.#settings.open());
    on('settings-reset', () => this.#settings.reset());
    on('settings-reload', () => {
      byId('settings-dialog').close();
      this.#loading.load({ ...this.#session.choice ?? DEMO, contextSize: undefined });
    });
    on('skip', (event) => {
      event.preventDefault();
      byId('input').focus();
    });
    for (const dialog of document.querySelectorAll('dialog')) {
      dialog.querySelector('[data-close]').addEventListener('click', () => dialog.close());
      // A click on the backdrop is a click on the dialog itself.
      dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
    }
    themeSwitch();
    acceptDrops((files) => this.#shelf.chooseFiles(files));
  }

  /** `?model=URL&prompt=TEXT` only fills fields: a link must not download or send anything by itself. */
  #followLink() {
    const query = new URLSearchParams(location.search);
    if (query.has('prompt')) this.#composer.prefill(query.get('prompt'));
    if (query.has('model')) this.#shelf.prefill(query.get('model'));
    this.#forgetLink();
  }

  /** What a link asks for is done once, not at every reload. */
  #forgetLink() {
    const url = new URL(location.href);
    for (const name of ['model', 'prompt']) url.searchParams.delete(name);
    if (url.href !== location.href) history.replaceState(history.state, '', url);
  }

  async #welcomeModel(choice) {
    this.#chat.modelChanged();
    this.#settings.tookContext(this.#session.model.info.contextSize);
    byId('toy').hidden = choice.kind !== 'demo';
    byId('thinking-switch').hidden = !this.#session.model.info.thinking;
    if (this.#session.model.info.threads > 1) return this.#tray.remove('threads');
    const reason = crossOriginIsolated ? 'this device or the settings allow no more.'
      : 'its host does not isolate it (the headers COOP and COEP are missing), so replies come slower.';
    return this.#tray.notice('threads', `Running on one thread: ${reason}`);
  }

  #modelChanged() {
    const { model, choice, isLoading } = this.#session;
    byId('model-name').textContent = model ? choice.label : (isLoading ? 'Loading…' : 'No model');
    this.#shelf.modelChanged();
    this.#readout.setLimit(model?.info.contextSize ?? 0);
    if (!this.#chat.isRunning) this.#readout.status(isLoading ? 'Loading the model' : (model ? 'Ready' : 'No model loaded'));
    this.#showState();
  }

  #chatChanged() {
    byId('welcome').hidden = this.#chat ? !this.#chat.isEmpty : false;
    document.title = this.#chat?.isEmpty === false ? `${oneLine(this.#chat.title, 50)} · quern` : 'quern';
    this.#composer.setRunning(this.#chat?.isRunning ?? false);
    this.#showState();
  }

  #showState() {
    const working = this.#chat?.isRunning && 'working';
    this.#readout.setState(working || (this.#session.isLoading && 'loading') || (this.#session.model ? 'ready' : 'none'));
  }

  /** After the engine itself has failed only a fresh one helps; after a message that is too long, another one. */
  #remedy(error) {
    if (codeOf(error) === 'use/context') return this.#shorten(error);
    if (!codeOf(error).startsWith('engine/')) return null;
    const choice = this.#session.choice;
    this.#session.release().then(() => this.#modelChanged());
    const run = async () => {
      const loading = this.#loading.load(choice);
      this.#chat.regenerate();
      await loading;
    };
    return { label: 'Restart the model', run };
  }

  /** What is too long: the system prompt, or else the message. Where the model itself ends, a larger context is no advice. */
  #shorten(error) {
    const { contextSize, contextLength } = this.#session.model.info;
    if (contextSize >= contextLength) error.hint = 'This model cannot hold more.';
    if (this.#settings.system.length <= this.#chat.lastQuestion.length) return { label: 'Edit the message', run: () => this.#chat.edit() };
    const run = async () => {
      if (await this.#settings.editSystem()) this.#chat.regenerate();
    };
    return { label: 'Shorten the system prompt', run };
  }

  #unsaved() {
    this.#tray.notice('storage', 'This browser does not let the page keep the conversation; it will be gone after a reload.');
  }
}

if (document.documentElement.dataset.framed === undefined) {
  new App().start();
}

// SPDX-License-Identifier: MIT
// The chat page: puts its parts together. It uses the library through its public entry only, as any page would. At the
// start it gets isolated, which may load the page once more. Then it loads the model used last, if that is on this
// device, or else the demo model, which comes with the page and needs no download.
import { QuernError, support } from 'quern';
import { Archive, UNDO_MS } from './conversation/archive.js';
import { Chat } from './conversation/chat.js';
import { Composer } from './conversation/composer.js';
import { areSaved } from './conversation/drafts.js';
import { helpFor, isLost } from './conversation/help.js';
import { List } from './conversation/list.js';
import { Readout } from './conversation/readout.js';
import { followEnd } from './conversation/scroll.js';
import { suggest } from './conversation/suggest.js';
import { Talks } from './conversation/talks.js';
import { chooseLanguage } from './shell/languages.js';
import { closeDialogs } from './shell/dialogs.js';
import { acceptDrops } from './shell/drop.js';
import { byId, button } from './shell/dom.js';
import { bytes, oneLine } from './shell/format.js';
import { maySee } from './model/vision.js';
import { DEMO, firstOffer } from './model/known.js';
import { Loading } from './model/loading.js';
import { Life } from './shell/life.js';
import { conversationInLink, forgetLink, linkConversation, presetInLink, readLink } from './shell/link.js';
import { startOffline } from './shell/offline.js';
import { Session } from './model/session.js';
import { Settings } from './shell/settings.js';
import { Shelf } from './model/shelf.js';
import { themeSwitch } from './shell/theme.js';
import { Tray } from './shell/tray.js';
import { joined, say } from './shell/words.js';

const showTools = async () => (await import('./tools/tool-switches.js')).showTools();

class App {
  #tray = new Tray();
  #readout = new Readout();
  #settings = new Settings({ onUnsaved: () => this.#unsaved(), onOpen: showTools });
  #session = new Session({
    onProgress: (progress) => this.#loading.progress(progress),
    onChange: () => this.#modelChanged(),
    beforeSwap: () => this.#chat?.stopAll(),
  });
  #talks = null;
  #shown = null;
  #chat = null;
  #list;
  #composer;
  #opening = null;
  #isMoving = false;    // the visitor goes back or forth
  #loading = new Loading(this.#session, this.#tray, {
    options: () => this.#settings.options,
    running: () => (this.#session.model && this.#talks ? this.#talks.running.length : 0),
    onStart: ({ kind }) => this.#life.carry(kind !== 'demo'),
    onLoad: (choice) => this.#welcomeModel(choice),
    onChoose: () => this.#shelf.open(),
  });
  #shelf = new Shelf(
    this.#session,
    (choice) => this.#loading.load(choice),
    () => this.#loading.remember(),
    (choice) => this.#compare(choice),
  );
  #life = new Life();
  #scroll = followEnd();

  constructor() {
    this.#composer = new Composer({
      onSend: (question, instead) => this.#send(question, instead),
      onStop: () => this.#chat?.stop(),
      onEditing: (message) => this.#chat?.markEdited(message),
      mayShow: () => maySee(this.#session, this.#tray, (one) => this.#shelf.suggest(one)),
      costOf: async (medium) => this.#chat?.costOf(medium) ?? 0,
      onRefuse: (sentence) => this.#tray.passing('refused', sentence, [], 12_000),
      onAdvice: (...advice) => (advice[0] ? this.#tray.notice('advice', ...advice) : this.#tray.remove('advice')),
      session: this.#session, context: () => this.#readout.context,
      onModels: (files) => this.#shelf.chooseFiles(files),
    });
    suggest((content) => this.#send({ content }));
    this.#wire();
    this.#chatChanged();
    this.#modelChanged();
  }

  async start() {
    const link = readLink();
    const begun = this.#life.begin();
    const opened = this.#openConversations(link);
    const prepared = this.#prepare();
    const loading = this.#loading.start(Promise.all([prepared, opened]), begun);
    const followed = () => {
      forgetLink();
      this.#askPreset();
    };
    prepared.then(followed, followed);      // if the page is loaded again, it still needs the link
    await opened;
    this.#listenToKeys();
    globalThis.launchQueue?.setConsumer(({ files }) => this.#openFiles(files));
    this.#followLink(link);
    this.#composer.focus();
    this.#tellEnding(await begun);
    return loading;
  }

  /** Shows the last conversation, or a new one if a link brings a prompt. */
  async #openConversations({ prompt }) {
    const archive = await Archive.open((name) => this.#session.forget(name));
    if (!archive.isSaved) this.#unsaved();
    this.#composer.keepIn(archive);
    this.#talks = new Talks(archive, {
      onChange: () => this.#chatChanged(), onStates: () => this.#statesChanged(), onUnsaved: () => this.#unsaved(),
    });
    this.#chat = new Chat(this.#talks, archive, this.#session, this.#settings, {
      onMeter: (numbers) => this.#readout.meter(numbers),
      onStatus: (text) => this.#readout.status(text),
      onEdit: (message) => this.#composer.edit(message),
      onFailure: (error, model) => {
        if (isLost(error)) this.#session.release(model).then(() => this.#modelChanged());
      },
      onDelete: (undo) => this.#tray.passing('deleted', say`Deleted, with all that followed.`, [
        button(say`Undo`, () => {
          this.#tray.remove('deleted');
          undo();
        }),
      ], UNDO_MS),
      onGiveBack: (id, question) => this.#composer.giveBack(id, question),
      helpFor: (error) => this.#helpFor(error),
    });
    this.#list = new List(archive, {
      onOpen: (id, place) => this.#open(id, place),
      unstored: () => this.#talks.unstored,
      onNotice: (message, actions, ms) => this.#tray.passing('list', message, actions, ms),
    });
    await (prompt === null && !presetInLink() ? this.#talks.resume(conversationInLink()) : this.#talks.open(''));
    addEventListener('pagehide', () => this.#chat.giveBackAll());
    addEventListener('popstate', () => {
      this.#askPreset();
      this.#goTo(conversationInLink());
    });
  }

  /** Shows a conversation, or a new one (''), at a place if one is given. */
  async #open(id, place) {
    this.#opening = this.#talks?.open(id);
    await this.#opening;
    this.#composer.focus();    // at once: what shows a place may have to be fetched, and the visitor goes on meanwhile
    if (!place) return;
    this.#scroll.stay();
    await this.#chat.reveal(place);
  }

  /** Follows the browser's buttons. A conversation that is gone leaves no trace in the history. */
  async #goTo(id) {
    this.#isMoving = true;
    await this.#open(id);
    this.#isMoving = false;
  }

  /**
   * Tells that the browser has closed the page before, and what may help. A large model does not load by itself after
   * that, so the page cannot end again and again.
   */
  #tellEnding({ times, heavy }) {
    if (times === 0) return;
    const again = times > 1 && heavy;
    const sentence = joined(
      say`The browser closed this page, most likely to save memory.`,
      !this.#talks.current.isEmpty && say`The conversation is as it was last saved.`,
      again && say`That was twice in a row: a smaller model, or a smaller context in the settings, needs less.`,
    );
    const choose = button(again ? say`Choose a smaller model` : say`Choose a model`, () => this.#shelf.open());
    this.#tray.notice('life', sentence, heavy ? [choose] : []);
  }

  /** Prepares the page before the first load. Never ends if the page is about to be loaded again. */
  async #prepare() {
    const able = support();
    const reloading = await startOffline(able.variant, {
      onWait: () => this.#readout.status(say`Preparing the page for its first use…`),
      isBusy: () => this.#isBusy,
      onUpdate: (reload) =>
        this.#tray.notice('update', say`A newer version of this page is ready.`, [button(say`Use it`, reload)]),
    });
    if (reloading) await new Promise(() => {});
    if (!able.ok) throw new QuernError('env/simd', able.reason);
  }

  /** Whether this tab knows more than is stored. */
  get #isBusy() { return !areSaved() || Boolean(this.#talks?.isLive); }

  async #send(question, instead) {
    await this.#opening;    // the message belongs to the conversation that is about to be shown
    if (!this.#chat) return false;
    this.#scroll.toEnd();
    return this.#chat.send(question, instead);
  }

  #wire() {
    const offer = firstOffer();
    byId('get-real').textContent = say`Get a real one: ${offer.known.label}, ${bytes(offer.one.size)}`;
    const on = (id, action) => byId(id).addEventListener('click', action);
    on('model-button', () => this.#shelf.open());
    on('get-real', () => this.#shelf.suggest(offer.one));
    on('new-chat', () => this.#open(''));
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
    closeDialogs();
    themeSwitch();
    chooseLanguage(() => this.#isBusy || this.#session.choice?.kind === 'file');
    acceptDrops((files) => this.#composer.attach(files));
  }

  /** Shows the preset that a link brings. */
  async #askPreset() {
    const preset = presetInLink();
    if (!preset) return;
    const { askPreset } = await import('./shell/presets.js');
    history.replaceState(history.state, '', location.pathname);
    askPreset(this.#settings, preset);
  }

  /** Takes files that the system opens with the installed page. @param {FileSystemFileHandle[]} handles */
  async #openFiles(handles) {
    const files = await Promise.allSettled(handles.map((handle) => handle.getFile()));
    this.#composer.attach(files.flatMap(({ value }) => value ?? []));
  }

  /** Gives the shortcuts of the keyboard their actions. */
  async #listenToKeys() {
    const { listenToKeys } = await import('./shell/keys.js');
    listenToKeys({
      newChat: () => byId('list-new').click(),
      search: () => this.#list.search(),
      list: () => this.#list.toggle(),
      focus: () => byId('input').focus(),
      edit: ({ target }) => target.id === 'input' && this.#composer.isFree && this.#chat.editLast(),
      // A search field with a text uses Esc itself.
      escape: ({ target }) => !(target.type === 'search' && target.value) && this.#composer.escape(),
      copy: () =>
        [...document.querySelectorAll('.assistant:not(.busy)')].at(-1)?.querySelector('.tools > .tool').click(),
    });
  }

  /** Follows a link: it only fills fields, and must not download or send anything by itself. */
  #followLink({ model, prompt }) {
    if (prompt !== null) this.#composer.prefill(prompt);
    if (model !== null) this.#shelf.prefill(model);
  }

  /** Lets another model answer the last question, too. */
  #compare(choice) {
    const page = {
      session: this.#session, loading: this.#loading, talks: this.#talks, chat: this.#chat, tray: this.#tray,
    };
    import('./conversation/late/compare.js')
      .then(({ compare }) => compare(choice, page))
      .catch((error) => this.#tray.error('compare', error));
  }

  async #welcomeModel(choice) {
    this.#chat?.measure();
    this.#composer.modelChanged();
    this.#settings.tookContext(this.#session.model.info.contextSize);
    byId('toy').hidden = choice.kind !== 'demo';
    byId('thinking-switch').hidden = !this.#session.model.info.thinking;
    byId('camera').hidden = !this.#session.model.info.vision;
    if (this.#session.model.info.vision) this.#tray.remove('images');
    if (this.#session.model.info.threads > 1) return this.#tray.remove('threads');
    return this.#tray.notice('threads', crossOriginIsolated
      ? say`Running on one thread: this device or the settings allow no more.`
      : say`Running on one thread: its host does not isolate it (the headers COOP and COEP are missing), so replies come slower.`);
  }

  #modelChanged() {
    const { model, choice, isLoading } = this.#session;
    byId('model-name').textContent = model ? choice.label : (isLoading ? say`Loading…` : say`No model`);
    this.#shelf.modelChanged();
    this.#readout.setLimit(model?.info.contextSize ?? 0);
    this.#showStatus();
    this.#statesChanged();
  }

  /** Sets the status line, unless a reply is being written. */
  #showStatus() {
    const { model, isLoading } = this.#session;
    if (!this.#talks?.current.run)
      this.#readout.status(isLoading ? say`Loading the model` : model ? say`Ready` : say`No model loaded`);
  }

  #chatChanged() {
    const talk = this.#talks?.current ?? null;
    const { id = '', isEmpty = true, title = '' } = talk ?? {};
    byId('welcome').hidden = !isEmpty;
    document.title = isEmpty ? 'quern' : `${oneLine(title, 50) || say`Conversation`} · quern`;
    this.#chat?.show();
    this.#composer.show(id);
    if (talk) linkConversation(id, !this.#isMoving && this.#shown !== null && talk !== this.#shown);
    this.#settings.show(isEmpty ? null : talk);
    if (talk !== this.#shown) this.#turned(talk);
    this.#statesChanged();
  }

  /** Shows another conversation. */
  #turned(talk) {
    this.#shown = talk;
    this.#readout.meter({ used: 0, tokensPerSecond: 0, ...talk.run?.meter });
    this.#showStatus();
    this.#chat.measure();
    this.#scroll.toEnd();
  }

  /** Updates the page when any reply has begun, changed its phase, or ended. */
  #statesChanged() {
    const { model, isLoading } = this.#session;
    const { current, running = [], states } = this.#talks ?? {};
    this.#composer.setRunning(Boolean(current?.run));
    this.#composer.showQueue(current?.queue ?? []);
    if (current) this.#list?.mark(current.id, states);
    if (current?.run) this.#readout.phase(current.run.phase);
    this.#readout.setState((running.length && 'working') || (isLoading && 'loading') || (model ? 'ready' : 'none'));
  }

  #helpFor(error) {
    return helpFor(error, {
      session: this.#session,
      settings: this.#settings,
      talk: this.#talks.current,
      load: (choice) => this.#loading.load(choice),
      regenerate: () => this.#chat.regenerate(),
      edit: (message) => this.#composer.edit(message),
    });
  }

  #unsaved() {
    this.#tray.notice('storage', say`This browser does not let the page save the conversation; it will be lost after a reload.`);
  }
}

if (document.documentElement.dataset.framed === undefined) {
  new App().start();
}

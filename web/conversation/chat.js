// SPDX-License-Identifier: MIT
// Asks questions and writes replies: one at a time in each conversation, streamed, saved while they grow, and stopped,
// repeated or continued on demand. The library keeps no conversation, so each question passes all messages that the
// model reads; the library finds the beginning that it knows.
import { announce } from '../shell/dom.js';
import { isAbort } from '../shell/failure.js';
import { oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';
import { savedName } from './record.js';
import { Log } from './log.js';
import { fenced, firstRead, promptOf } from './prompt.js';
import { withTools } from '../message/tools.js';
import { Run } from './run.js';
import { sceneOf } from './scene.js';

const nameOf = (talk) => oneLine(talk.title, 50);

export class Chat {
  #talks;
  #log;
  #archive;
  #session;
  #settings;
  #events;
  #titles = null;   // once they are needed

  /**
   * @param {import('./talks.js').Talks} talks
   * @param {import('./archive.js').Archive} archive
   * @param {import('../model/session.js').Session} session
   * @param {import('../shell/settings.js').Settings} settings
   * @param {object} events
   * @param {(numbers: {used?: number, tokensPerSecond?: number}) => void} events.onMeter numbers of the conversation
   *   that is shown
   * @param {(sentence: string) => void} events.onStatus a sentence about the conversation that is shown
   * @param {(message: object) => void} events.onEdit puts a message into the field
   * @param {(id: string, question: object) => void} events.onGiveBack a waiting question of a conversation is not asked
   * @param {(undo: () => void) => void} events.onDelete a message is deleted, and can be brought back
   * @param {(error: Error, model: object) => void} events.onFailure a model's reply has failed
   * @param {(error: Error) => ?{label: string, run: Function}} events.helpFor a remedy other than trying again
   */
  constructor(talks, archive, session, settings, events) {
    this.#talks = talks;
    this.#archive = archive;
    this.#session = session;
    this.#settings = settings;
    this.#events = events;
    const again = (question) => this.#answer((talk) => talk.reply(question));
    this.#log = new Log({
      onEdit: events.onEdit,
      onDelete: (message) => this.#delete(message),
      onAnswer: (message) => again(message.id),
      onAgain: (message) => again(message.parent),
      onContinue: ({ id }) => this.#answer((talk) => talk.path.find((one) => one.id === id)),
      onBranch: (message) => talks.current.choose(message),
      helpFor: ({ error, parent }) => events.helpFor(error) ?? { label: say`Try again`, run: () => again(parent) },
    });
  }

  /** Called when the conversation, or the choice of the conversation, has changed. */
  show() {
    this.#log.show(this.#talks.current);
  }

  /**
   * Asks a question in the conversation that is shown, and writes the reply. While one is written, the question waits
   * for its end.
   * @param {{content: string} & import('./attached.js').Parts} question
   * @param {{parent: string, role: string}} [instead] a message that it replaces, as a new branch; a reply is only
   *   written anew
   * @returns {Promise<boolean>} false: it was not sent, because another tab is writing in this conversation
   */
  async send(question, instead) {
    const talk = this.#talks.current;
    if (instead?.role === 'assistant') return this.#answer(() => talk.rewrite(instead, question.content), talk);
    if (talk.run && !instead) {
      talk.queue.push(question);
      this.#talks.tell();
      return true;
    }
    return this.#ask(talk, question, instead);
  }

  /** Deletes a message with all that follow it; a first one with its conversation, if that has no other. */
  #delete(message) {
    return this.#answer((talk) => {
      const isAll = !message.parent && talk.siblings(message).length === 1;
      if (isAll) this.#archive.remove(talk.id);
      const bringBack = () => this.#archive.restore(talk.id).then(() => this.#talks.open(talk.id));
      this.#events.onDelete(isAll ? bringBack : talk.remove(message));
    });
  }

  #ask(talk, question, instead) {
    return this.#answer(() => talk.reply(talk.ask(question, instead?.parent).id), talk);
  }

  /** Asks what has waited for a reply that is complete. After another end the visitor decides. */
  async #askNext(talk, how) {
    if (!talk.queue.length || talk.run || talk.held) return;
    const [question] = talk.queue;
    if (how !== 'done') return this.#giveBack(talk);
    talk.queue.shift();
    if (await this.#ask(talk, question)) return;
    talk.queue.unshift(question);
    this.#giveBack(talk);
  }

  /** Gives all waiting questions back, because the page is left. */
  giveBackAll() {
    for (const talk of this.#talks.running) this.#giveBack(talk);
  }

  #giveBack(talk) {
    for (const question of talk.queue.splice(0)) this.#events.onGiveBack(talk.id, question);
    this.#talks.tell();
  }

  /** Number of tokens of an image, a video or a text; 0 if unknown. */
  async costOf({ type, blob, ...attached }) {
    const { model } = this.#session;
    if (!blob) return model?.countTokens(fenced(attached)) ?? 0;
    const count = (...parts) => model.countTokens([{ role: 'user', content: [...parts, { type: 'text', text: '.' }] }]);
    if (!model?.info.vision) return 0;
    const [all, rest] = await Promise.all([count({ type, [type]: blob }), count()]);
    return all - rest;
  }

  /** Shows a place in the conversation that is shown, on another branch too. @param {{message: string, words: string}} place */
  async reveal({ message: id, words }) {
    const talk = this.#talks.current;
    const { showPlace } = await import('./find.js');
    const message = talk.messages.find((one) => one.id === id);
    if (!message || talk !== this.#talks.current) return;
    if (!talk.path.includes(message)) talk.choose(message);
    const { node } = this.#log.reveal(message);
    await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    showPlace(node, words);
  }

  /** Marks a message as the one that is being edited; null: none is. */
  markEdited(message) {
    this.#log.markEdited(message?.id);
  }

  get #question() {
    return this.#talks.current.path.findLast(({ role }) => role === 'user');
  }

  /** Writes a new reply to the last question. */
  regenerate() {
    const question = this.#question;
    return question && this.#answer((talk) => talk.reply(question.id));
  }

  /** Puts the last question into the field. @returns {boolean} whether there is one */
  editLast() {
    const question = this.#question;
    if (question) this.#events.onEdit(question);
    return Boolean(question);
  }

  /** Shows how much of the context the conversation takes. */
  async measure() {
    const { model } = this.#session;
    const talk = this.#talks.current;
    if (!model || talk.run || talk.isEmpty) return;
    const messages = this.#messages(talk, model, { from: talk.first });
    const count = async () => {
      if (!this.#settings.of(talk).tools) return model.countTokens(messages);
      const scene = sceneOf(talk, this.#log, this.#session);
      return model.countTokens(messages, { tools: (await withTools()).listOf(model, scene) });
    };
    const used = await count().catch(() => 0);
    if (!talk.run && talk === this.#talks.current) this.#events.onMeter({ used });
  }

  /** Ends the reply that is shown. Its text stays. */
  stop() {
    return this.#talks.current.stop();
  }

  /** Ends all replies. Their texts stay. Resolves when the model is free. */
  stopAll() {
    this.#titles?.stop();
    return Promise.all(this.#talks.running.map((talk) => talk.stop()));
  }

  /**
   * Ends the running reply of the conversation that is shown, and writes or continues a reply there, if no other tab
   * writes in it.
   * @param {(talk: import('./talk.js').Talk) => ?object} begin adds or finds the reply @returns {Promise<boolean>}
   */
  async #answer(begin, talk = this.#talks.current) {
    const ended = talk.stop();
    this.#titles?.stop();
    let how = 'stopped';
    talk.begin();
    const held = talk.held = ended.then(() => this.#archive.alone(talk.id, async () => {
      const message = begin(talk);
      if (message) how = await this.#write(talk, message);
    }));
    try {
      const free = await held;
      if (!free) this.#say(talk, say`Another tab is writing in this conversation`);
      return free;
    } finally {
      if (talk.held === held) talk.held = null;
      this.#askNext(talk, how);
      this.#talks.settled(talk);
      if (how === 'done') this.#entitle(talk);
    }
  }

  /** Lets the model make a title when there is time. Those of the toy would be bad. */
  #entitle(talk) {
    const { named, titled } = talk.entry ?? {};
    if (named || titled || this.#session.choice?.kind === 'demo') return;
    import('./late/titles.js').then(({ Titles }) => {
      this.#titles ??= new Titles(this.#talks, this.#session, this.#settings, this.#log, this.#archive);
      this.#titles.want(talk);
    }, () => {});
  }

  async #write(talk, message) {
    const goesOn = Boolean(message.content || message.thinking);
    const run = new Run(message, (isPhase) => this.#follow(talk, isPhase));
    talk.run = run;
    talk.touch(this.#settings.of(talk));
    this.#changed(talk);
    let how = 'failed';
    try {
      how = this.#conclude(talk, await Promise.race([this.#generate(talk, goesOn), run.lost]));
    } catch (error) {
      how = isAbort(error) ? this.#conclude(talk, { finishReason: 'aborted' }) : this.#fail(talk, error);
    } finally {
      talk.run = null;
      await talk.stored();
      run.end();
      this.#talks.ended(talk, how);
      this.#changed(talk);
    }
    return how;
  }

  /** Updates the views when a reply has begun or ended. */
  #changed(talk) {
    if (talk === this.#talks.current) this.show();
    this.#talks.tell();
  }

  /** Updates the views when a reply has another phase or another sentence about its progress. */
  #follow(talk, isPhase) {
    this.#log.viewOf(talk.run.message)?.wait(talk.run.says);
    if (isPhase) this.#talks.tell();
  }

  async #generate(talk, goesOn) {
    const { run } = talk;
    if (!this.#session.model) run.wait(say`Waiting for the model…`);
    const model = run.model = await this.#session.ready(run.signal);
    run.message.model = this.#session.choice?.label ?? '';
    return this.#stream(talk, model, goesOn);
  }

  /** @param {{goesOn?: boolean, from?: string}} which see promptOf */
  #messages(talk, model, which) {
    return promptOf(talk, { system: this.#settings.of(talk).system, sees: Boolean(model.info.vision), ...which });
  }

  async #stream(talk, model, goesOn) {
    const { run } = talk;
    const { message } = run;
    const messages = this.#messages(talk, model, { goesOn });
    const onPrefill = (progress) => {
      run.read(progress);
      this.#measure(talk);
    };
    // The model's cache of a conversation is stored under its id, so that the conversation goes on at once after a
    // reload. The archive deletes it with the conversation. The demo model stores nothing, since it reads as fast.
    const save = this.#archive.isSaved && this.#session.choice?.kind !== 'demo' ? savedName(talk.id) : null;
    const { system, tools: wanted, ...sampling } = talk.preset;
    const options = { ...sampling, overflow: 'drop', save, signal: run.signal, onPrefill };
    const toolChoice = goesOn ? undefined : wanted;
    const tools = toolChoice && (await withTools());
    const reply = tools
      ? tools.ask(model, messages, { ...options, toolChoice }, sceneOf(talk, this.#log, this.#session))
      : model.chat(messages, { ...options, continue: goesOn });
    run.ask(reply);
    for await (const event of reply.events) {
      if (run.phase === 'over') break;
      if (event.type === 'dropped') {
        talk.readFrom(firstRead(talk, event.messages));
        continue;
      }
      run.take(event);
      if (tools) tools.take(message, event);
      this.#log.viewOf(message)?.push(event, message);
      this.#measure(talk);
      talk.grown(message);
    }
    const result = await reply.result;
    if (result.dropped === 0) talk.readFrom('');
    return result;
  }

  #measure(talk) {
    if (talk === this.#talks.current) this.#events.onMeter(talk.run.meter);
  }

  #say(talk, sentence) {
    if (talk === this.#talks.current) this.#events.onStatus(sentence);
  }

  /** Adds a reply that was finished or stopped to the conversation. */
  #conclude(talk, result) {
    const { run } = talk;
    run.finish(result);
    talk.put(run.message);
    this.#log.settle(run.message);
    this.#measure(talk);
    const { choice } = this.#session;
    if (run.message.speed && choice?.kind === 'url')
      import('../model/late/speeds.js').then(({ note }) => note(choice.source, run.message.speed), () => {});
    const stopped = result.finishReason === 'aborted';
    this.#say(talk, stopped ? say`Stopped` : say`Ready`);
    if (stopped) this.#announce(talk, say`Stopped.`, '');
    else this.#announce(talk, say`Reply: ${run.message.content.slice(0, 2000)}`, say`The reply in ${nameOf(talk)} is written.`);
    return stopped ? 'stopped' : 'done';
  }

  #fail(talk, error) {
    const { run } = talk;
    run.fail(error);
    this.#events.onFailure(error, run.model);
    talk.fail(run.message);
    this.#log.settle(run.message);
    this.#say(talk, say`Failed`);
    this.#announce(talk, '', say`The reply in ${nameOf(talk)} has failed.`);
    return 'failed';
  }

  /** Tells screen readers the reply that is shown, or that a reply elsewhere has ended. */
  #announce(talk, here, there) {
    const sentence = talk === this.#talks.current ? here : there;
    if (sentence) announce(sentence);
  }
}

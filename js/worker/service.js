// SPDX-License-Identifier: MIT
// The engine worker's main object: takes messages and answers them. Replies and scores run side by side (runner.js);
// other requests (such as tokens of a text) are answered in between. Images of a conversation are measured first, and
// released after the reply (media-loader.js).

import { Chat } from '../reply/chat.js';
import { around } from '../engine/around.js';
import { bytesOf, textOf } from '../engine/text-run.js';
import { asQuernError, isOf, toWire } from '../shared/errors.js';
import { Generation } from '../reply/generation.js';
import {
  CHAT, COMPLETE, DETOKENIZE, DONE, DOWNLOAD, DRAFT, ERROR, EVENTS, FATAL, FORGET, SAVED, LOAD, LOGITS, LOOK, NOTICE,
  PING, PONG, PROFILE, PROMPT, READY, STOP, TOKENIZE, VECTORS,
} from '../shared/protocol.js';
import { Job } from './job.js';
import { Saving } from './saving.js';
import { Runner } from './runner.js';
import { Asker } from './asker.js';
import { startEngine, storeModel } from './start.js';

/**
 * The differences between a browser's worker (worker.js) and Node's (worker-node.js).
 * @typedef {object} ServiceHost
 * @property {(receive: (message: any) => void) => void} listen registers a receiver of the page's messages
 * @property {() => Promise<void>} rest
 * @property {() => Promise<import('./media-loader.js').Vision>} vision loads the code for models with vision
 * @property {() => Promise<typeof import('./extras.js')>} extras loads the code for replies with special demands
 * @property {() => Promise<typeof import('./pooling.js')>} pooling loads the code for scores and vectors of texts
 * @property {() => Promise<typeof import('./template.js')>} template loads the code that makes prompts of conversations
 * @property {() => Promise<typeof import('./drafter.js')>} drafter loads the code for models with a draft model
 * @property {typeof fetch} fetch
 * @property {import('./side-lane.js').SideHost['aside']} [aside] starts a side worker
 * @property {Int32Array} [busy] shared with side workers; 1 while replies are made
 *
 * @typedef {import('./start.js').EngineHost & ServiceHost} Host
 */

/** Stands for the prompt of a request that was stopped before its prompt was made. @type {any} */
const NOTHING = { ids: new Int32Array(0), channels: [], inside: null, defaults: {} };

/** Options that need extras.js. */
const EXTRAS = ['tools', 'logprobs', 'promptLogprobs', 'suffix', 'schema', 'regex', 'grammar', 'json', 'choices'];

/** Buffers of large arrays of an answer, which are transferred instead of copied. */
const buffersOf = (value) => [value?.values ?? value].filter(ArrayBuffer.isView).map(({ buffer }) => buffer);

export class Service {
  #host;
  #engine = null;
  #chat = null;
  #runner = null;
  #media = null;
  #saving = null;
  #jobs = new Map();      // id -> job that is not answered yet
  #grammars;              // the means that extras.js gets
  #grammarBytes = (_) => 0;
  /** @type {(ids: Int32Array) => number[] | undefined} */
  #placesIn = (_) => undefined;
  #events = [];           // [id, event] not sent yet

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
    host.listen((message) => this.#receive(message));
    host.post({ type: READY });
  }

  #receive(message) {
    if (message?.type === PING) {
      this.#host.post({ type: PONG });
    } else if (message?.type === STOP) {
      this.#jobs.get(message.target)?.stop();
    } else if (Object.hasOwn(this.#calls ?? {}, message?.type ?? '')) {
      this.#answer(message);
    }
  }

  async #answer(message) {
    const job = new Job(message);
    this.#jobs.set(job.id, job);
    try {
      this.#done(job, await this.#calls[message.type](message, job, (event) => this.#tell(job.id, event)));
    } catch (error) {
      if (job.stopped && error === job.signal.reason) this.#done(job, null);      // nobody waits for an answer
      else this.#fail(job, asQuernError(error, [LOAD, DOWNLOAD].includes(message.type) ? 'load' : 'call'));
    } finally {
      this.#jobs.delete(job.id);
    }
  }

  /** Queues an event. All events of one step go in one message, before any answers that follow from them. */
  #tell(id, event) {
    if (this.#events.length === 0)
      queueMicrotask(() => this.#host.post({ type: EVENTS, events: this.#events.splice(0) }));
    this.#events.push([id, event]);
  }

  #done(job, value) {
    const wrapped = job.bare ? value : { value, ...this.#spent() };
    this.#host.post({ type: DONE, id: job.id, value: wrapped }, buffersOf(value));
  }

  /**
   * Reports a failure. After a crash the engine is not entered again, and all further messages wait until the page ends
   * this worker.
   */
  #fail({ id }, error) {
    if (!isOf('engine', error)) {
      this.#host.post({ type: ERROR, id, error: toWire(error) });
    } else if (this.#calls) {
      this.#calls = null;
      this.#host.post({ type: FATAL, error: toWire(error) });
      this.#runner?.crash(error);
    }
  }

  #calls = {
    [LOAD]: (message, job, emit) => {
      job.bare = true;
      return this.#load(message, emit);
    },
    [DOWNLOAD]: (message, job, emit) => {
      job.bare = true;
      const { store, ...options } = message.options;
      return storeModel(this.#host, message.source, { ...options, store: this.#host.storeOf(store) }, emit);
    },
    [CHAT]: ({ messages, media, options }, job, emit) => this.#withExtra(options, job, (extra) => {
      const reply = (prompt) => new Generation(this.#engine, prompt, options, emit, extra);
      return this.#converse({ messages, media, options, mustFit: true, save: options.save }, job, reply);
    }),
    [COMPLETE]: ({ prompt: given, options }, job, emit) => this.#withExtra(options, job, async (extra) => {
      const reply = (prompt) => new Generation(this.#engine, prompt, options, emit, extra);
      const begun = async () => {
        const asker = this.#asker(options, job);
        const prompt = await (extra ? extra.prompt(this.#chat, given, asker) : this.#chat.plain(given, asker));
        const work = reply(prompt);
        await extra?.read(prompt, work, (scores) => this.#runner.add(scores, job), emit);
        return this.#runner.add(work, job);
      };
      return job.unlessStopped(begun, () => reply(NOTHING).stop());
    }),
    [LOGITS]: async ({ ids, messages, media, options }, job) => {
      const { Scores } = await this.#host.pooling();
      const scores = (prompt) => new Scores(prompt, this.#engine.facts.vocabSize, options);
      if (messages) return this.#converse({ messages, media, options }, job, scores);
      return ids.length ? this.#runner.add(scores({ ids }), job) : new Float32Array(0);
    },
    [LOOK]: ({ media }, job) => this.#media.look(media, this.#asker({}, job)),
    [VECTORS]: async (message, job, emit) => (await this.#host.pooling())
      .pool(this.#engine, this.#runner, message, { job, emit, asker: this.#asker(message.options, job) }),
    [DRAFT]: async (message) => (await this.#host.drafter()).connect(this.#engine, this.#runner, message),
    [SAVED]: () => this.#saving.saved(),
    [FORGET]: ({ name }) => this.#saving.forget(name),
    [PROFILE]: () => this.#engine.profile(),
    [TOKENIZE]: async ({ text, options }, job) =>
      around(await this.#asker(options, job).tokens(text), this.#engine.facts.added),
    [DETOKENIZE]: ({ ids, bytes, options }, job) =>
      this.#asker(options, job).through(bytes ? bytesOf(this.#engine, ids) : textOf(this.#engine, ids)),
    [PROMPT]: async ({ messages, media, options }, job) => (await this.#promptOf(messages, media, options, job)).ids,
  };

  /** Makes a reply, with extras.js if the options need it. */
  async #withExtra(options, job, reply) {
    if (!EXTRAS.some((name) => name in options)) return reply();
    const { grammarBytes, openExtra } = await this.#host.extras();
    this.#grammarBytes = grammarBytes;
    const extra = await openExtra(this.#engine, this.#grammars, options, job);
    return reply(extra).finally(() => extra.end());
  }

  /** The tools of a conversation; undefined if it has nothing to do with tools. */
  async #toolsOf(messages, options) {
    if (!options.tools && !options.toolChoice && !messages.some(({ role, toolCalls }) => role === 'tool' || toolCalls))
      return undefined;
    const { Tools, formOf } = await this.#host.extras();
    return new Tools(messages, options, formOf(this.#engine.chatTemplate(true), this.#engine.facts));
  }

  /** Does the work of a request, in the turns of its owner. */
  #asker(options, { signal }) { return new Asker(this.#engine, this.#runner.turns, options, signal); }

  /** The prompt of a conversation with its media. */
  async #promptOf(messages, media, options, job) {
    const tools = await this.#toolsOf(messages, options);
    const asker = this.#asker(options, job);
    const places = media.length ? await this.#media.measure(tools?.arranged(media) ?? media, asker) : undefined;
    return this.#chat.prompt(messages, { ...options, places, tools }, asker);
  }

  /**
   * Runs work on a conversation. Its images are held until the work has ended and the conversation is saved.
   * @param {{messages: object[], media: import('../shared/protocol.js').Medium[], options: any, mustFit?: boolean,
   *   save?: string}} asked
   * @param {(prompt: import('../reply/chat.js').Prompt) => import('./runner.js').Work} workOf
   */
  async #converse({ messages, media, options, mustFit, save }, job, workOf) {
    if (job.stopped) return workOf(NOTHING).stop();
    let prompt = NOTHING;
    const release = () => this.#media?.release(prompt.media ?? []);
    const promptOf = (some, theirs, fits) => this.#promptOf(some, theirs, { ...options, mustFit: fits }, job);
    try {
      const mayDrop = options.overflow === 'drop';
      prompt = await promptOf(messages, media, mustFit && !mayDrop);
      if (mayDrop) prompt = await this.#shortened(prompt, { messages, media, options }, promptOf);
      prompt.marks = this.#placesIn(prompt.ids);
      const work = workOf(prompt);
      if (prompt.places) prompt.media = await this.#media.take(prompt.places.order, this.#asker(options, job));
      if (save !== undefined) return await this.#saving.run(save, work, job, release);
      const result = await this.#runner.add(work, job);
      release();
      return result;
    } catch (error) {
      if (job.stopped && error === job.signal.reason) return workOf(prompt).stop();
      if (!isOf('engine', error)) release();
      throw error;
    }
  }

  /**
   * Drops the oldest turns of a conversation if it is too long. A prompt of at most half the context leaves room for a
   * reply; then the code that shortens is not fetched.
   */
  async #shortened(prompt, { messages, media, options: { maxTokens } }, promptOf) {
    const { contextSize } = this.#engine;
    if (prompt.ids.length <= contextSize / 2) return { ...prompt, dropped: 0 };
    const { promptThatFits } = await this.#host.extras();
    return promptThatFits(prompt, { messages, media }, { contextSize, maxTokens }, promptOf);
  }

  // --- loading ---

  async #load({ source, options: { store: wanted, saveMaxBytes, ...options } }, emit) {
    const { obstacle, rest } = this.#host;
    const store = this.#host.storeOf(wanted);
    const url = options.wasmUrl && String(new URL('grammar.wasm', options.wasmUrl));
    const allowed = Math.min(options.memoryLimit ?? Infinity, this.#host.deviceMemory ?? Infinity);
    this.#engine = await startEngine(this.#host, source, { ...options, store }, emit);
    this.#chat = new Chat(this.#engine, this.#renderer());
    this.#runner = new Runner(this.#engine, rest, this.#host.busy);
    this.#grammars = {
      allowed,
      host: this.#host,
      compile: () => this.#host.compile('grammar', url),
      turns: this.#runner.turns,
    };
    this.#saving = new Saving(this.#engine, this.#runner, {
      store,
      saveMaxBytes,
      tell: (text) => this.#host.post({ type: NOTICE, text }),
      fail: (error) => this.#fail({ id: 0 }, error),
    });
    this.#saving.expect();
    if (this.#engine.facts.stateBytes) this.#placesIn = (await this.#host.extras()).placesIn(this.#engine);
    if (this.#engine.facts.vision) {
      const vision = await this.#host.vision();
      this.#media = new vision.MediaLoader(this.#engine, vision, this.#host, options.visionOptions);
    }
    if (obstacle) this.#host.post({ type: NOTICE, text: `quern: ${obstacle}` });
    return this.#info();
  }

  #renderer() {
    return async (template, json, asker) => (await this.#host.template()).render(template, json, asker);
  }

  /** The engine's facts, and those that only this worker knows. */
  #info() {
    return { ...this.#engine.facts, thinking: this.#chat.canThink, ...this.#computes(), ...this.#spent() };
  }

  #computes() {
    const { gpu } = this.#engine;
    return { backend: gpu ? 'webgpu' : 'cpu', gpu };
  }

  #spent() {
    return {
      memory: { ...this.#engine.memory(), grammars: this.#grammarBytes(this.#engine) },
      work: this.#engine.work(),
    };
  }
}

// SPDX-License-Identifier: MIT
// The engine worker's work: messages in, answers out. Replies and scores run side by side (runner.js); the rest (tokens of a text) is
// answered in between.

import { Chat } from '../reply/chat.js';
import { asQuernError, isOf, toWire } from '../shared/errors.js';
import { Generation } from '../reply/generation.js';
import {
  CHAT, COMPLETE, DETOKENIZE, DONE, DOWNLOAD, ERROR, EVENTS, FATAL, FORGET, KEPT, LOAD, LOGITS, NOTICE, PING, PONG, PROFILE, PROMPT, READY,
  STOP, TOKENIZE,
} from '../shared/protocol.js';
import { Keeping } from './keeping.js';
import { Renderer } from '../reply/renderer.js';
import { Runner } from './runner.js';
import { Scores } from '../reply/scores.js';
import { startEngine, storeModel } from './start.js';

/**
 * What differs between a browser's worker (worker.js) and Node's (worker-node.js).
 * @typedef {object} ServiceHost
 * @property {(receive: (message: any) => void) => void} listen to the page's messages
 * @property {() => import('../reply/renderer.js').TemplatePort} startTemplateWorker
 * @property {() => Promise<void>} rest
 *
 * @typedef {import('./start.js').EngineHost & ServiceHost} Host
 */

export class Service {
  #host;
  #engine = null;
  #chat = null;
  #runner = null;
  #keeping = null;
  #jobs = new Map();      // id -> job, of all that is not answered
  #events = [];           // [id, event] that have not been sent

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
      this.#stop(this.#jobs.get(message.target));
    } else if (Object.hasOwn(this.#calls ?? {}, message?.type ?? '')) {
      this.#answer(message);
    }
  }

  async #answer(message) {
    const job = { id: message.id, stopped: false, onStop() {} };
    this.#jobs.set(job.id, job);
    try {
      this.#done(job, await this.#calls[message.type](message, job, (event) => this.#tell(job.id, event)));
    } catch (error) {
      this.#fail(job, asQuernError(error, [LOAD, DOWNLOAD].includes(message.type) ? 'load' : 'call'));
    } finally {
      this.#jobs.delete(job.id);
    }
  }

  #stop(job) {
    if (!job) return;
    job.stopped = true;
    job.onStop();
  }

  /** All events of one step go in one message, before whatever answers follow from it. */
  #tell(id, event) {
    if (this.#events.length === 0) queueMicrotask(() => this.#host.post({ type: EVENTS, events: this.#events.splice(0) }));
    this.#events.push([id, event]);
  }

  /** Large arrays are handed over, not copied. */
  #done(job, value) {
    const wrapped = job.bare ? value : { value, memory: this.#engine.memory(), work: this.#engine.work() };
    this.#host.post({ type: DONE, id: job.id, value: wrapped }, ArrayBuffer.isView(value) ? [value.buffer] : []);
  }

  /** After a crash the engine is not entered again: whatever else comes waits until the page has ended this worker. */
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
      const { cache, ...options } = message.options;
      return storeModel(this.#host, message.source, { ...options, store: this.#host.storeOf(cache) }, emit);
    },
    [CHAT]: async ({ messages, options: { thinking, continue: goesOn, keep, ...options } }, job, emit) => {
      const prompt = await this.#chat.prompt(messages, { thinking, continue: goesOn, mustFit: true });
      const generation = new Generation(this.#engine, prompt, options, emit);
      return keep === undefined ? this.#runner.add(generation, job) : this.#keeping.run(keep, generation, job);
    },
    [COMPLETE]: ({ prompt, options }, job, emit) => (
      this.#runner.add(new Generation(this.#engine, this.#chat.plain(prompt), options, emit), job)),
    [LOGITS]: ({ ids }, job) => (ids.length ? this.#runner.add(new Scores(ids, this.#engine.facts.vocabSize), job) : new Float32Array(0)),
    [KEPT]: () => this.#keeping.kept(),
    [FORGET]: ({ name }) => this.#keeping.forget(name),
    [PROFILE]: () => this.#engine.profile(),
    [TOKENIZE]: ({ text }) => this.#engine.tokenize(text),
    [DETOKENIZE]: ({ ids }) => this.#engine.detokenize(ids),
    [PROMPT]: async ({ messages, thinking }) => (await this.#chat.prompt(messages, { thinking })).ids,
  };

  // --- loading ---

  async #load({ source, options: { cache, keepBytes, ...options } }, emit) {
    const { obstacle, rest } = this.#host;
    const store = this.#host.storeOf(cache);
    this.#engine = await startEngine(this.#host, source, { ...options, store }, emit);
    this.#chat = new Chat(this.#engine, this.#renderer());
    this.#runner = new Runner(this.#engine, rest);
    this.#keeping = new Keeping(this.#engine, this.#runner, {
      store, keepBytes, rest, tell: (text) => this.#host.post({ type: NOTICE, text }), fail: (error) => this.#fail({ id: 0 }, error),
    });
    if (obstacle) this.#host.post({ type: NOTICE, text: `quern: ${obstacle}` });
    return this.#info();
  }

  #renderer() {
    const renderer = new Renderer(this.#host.startTemplateWorker);
    return (template, variables) => renderer.render(template, variables);
  }

  /** The engine's facts and what only this side knows. */
  #info() {
    return { ...this.#engine.facts, thinking: this.#chat.canThink, memory: this.#engine.memory(), work: this.#engine.work() };
  }
}

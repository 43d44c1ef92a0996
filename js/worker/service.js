// SPDX-License-Identifier: MIT
// The engine worker's work: messages in, answers out. Whatever uses the conversation waits its turn; the rest
// (tokens of a text) is answered in between.

import { Chat } from '../reply/chat.js';
import { asQuernError, toWire } from '../shared/errors.js';
import { compute, generate } from '../reply/generate.js';
import {
  CHAT, COMPLETE, DETOKENIZE, DONE, DOWNLOAD, ERROR, EVENT, FATAL, LOAD, LOGITS, NOTICE, PING, PONG, PROFILE, PROMPT, READY, STOP,
  TOKENIZE,
} from '../shared/protocol.js';
import { Renderer } from '../reply/renderer.js';
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
  #jobs = new Map();            // id -> job, of all that is not answered
  #turn = Promise.resolve();    // of the conversation

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
      const job = this.#jobs.get(message.target);
      if (job) job.stopped = true;
    } else if (Object.hasOwn(this.#calls, message?.type ?? '')) {
      this.#answer(message);
    }
  }

  async #answer(message) {
    const job = { id: message.id, stopped: false, rest: this.#host.rest };
    const emit = (event) => this.#host.post({ type: EVENT, id: job.id, event });
    this.#jobs.set(job.id, job);
    try {
      this.#done(job, await this.#calls[message.type](message, job, emit));
    } catch (error) {
      this.#fail(job, asQuernError(error, [LOAD, DOWNLOAD].includes(message.type) ? 'load' : 'call'));
    } finally {
      this.#jobs.delete(job.id);
    }
  }

  /** Large arrays are handed over, not copied. */
  #done(job, value) {
    const wrapped = job.bare ? value : { value, memory: this.#engine.memory() };
    this.#host.post({ type: DONE, id: job.id, value: wrapped }, ArrayBuffer.isView(value) ? [value.buffer] : []);
  }

  /** After a crash the engine is not entered again: whatever still waits its turn waits until the page has ended this worker. */
  #fail({ id }, error) {
    const fatal = error.code.startsWith('engine/');
    if (fatal) this.#turn = new Promise(() => {});
    this.#host.post({ ...(fatal ? { type: FATAL } : { type: ERROR, id }), error: toWire(error) });
  }

  #calls = {
    [LOAD]: (message, job, emit) => {
      job.bare = true;
      return this.#load(message, emit);
    },
    [DOWNLOAD]: (message, job, emit) => {
      job.bare = true;
      return storeModel(this.#host, message.source, message.options, emit);
    },
    [CHAT]: (message, job, emit) => this.#inTurn(() => this.#reply(message, job, emit)),
    [COMPLETE]: ({ prompt, options }, job, emit) => this.#inTurn(() => generate(this.#engine, job, this.#chat.plain(prompt), options, emit)),
    [LOGITS]: (message, job) => this.#inTurn(() => this.#logits(message, job)),
    [PROFILE]: () => this.#inTurn(() => this.#engine.profile()),
    [TOKENIZE]: ({ text }) => this.#engine.tokenize(text),
    [DETOKENIZE]: ({ ids }) => this.#engine.detokenize(ids),
    [PROMPT]: async ({ messages, thinking }) => (await this.#chat.prompt(messages, { thinking })).ids,
  };

  #inTurn(work) {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  // --- loading ---

  async #load({ source, options }, emit) {
    const { obstacle } = this.#host;
    this.#engine = await startEngine(this.#host, source, options, emit);
    this.#chat = new Chat(this.#engine, this.#renderer());
    if (obstacle) this.#host.post({ type: NOTICE, text: `quern: ${obstacle}` });
    return this.#info();
  }

  #renderer() {
    const renderer = new Renderer(this.#host.startTemplateWorker);
    return (template, variables) => renderer.render(template, variables);
  }

  /** The engine's facts and what only this side knows. */
  #info() {
    return { ...this.#engine.facts, thinking: this.#chat.canThink, memory: this.#engine.memory() };
  }

  // --- replies ---

  async #reply({ messages, options: { thinking, continue: goesOn, ...options } }, job, emit) {
    const prompt = await this.#chat.prompt(messages, { thinking, continue: goesOn, mustFit: true });
    return generate(this.#engine, job, prompt, options, emit);
  }

  async #logits({ ids }, job) {
    const width = this.#engine.facts.vocabSize;
    if (ids.length === 0) return new Float32Array(0);
    this.#engine.set(ids, 'all');
    const all = new Float32Array(ids.length * width);
    await compute(this.#engine, job, () => {
      const part = this.#engine.logits();
      if (part) all.set(part.rows, part.first * width);
    });
    return all;
  }
}

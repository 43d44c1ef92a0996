// SPDX-License-Identifier: MIT
// The engine worker's work: messages in, answers out. Whatever uses the conversation waits its turn; the rest
// (tokens of a text) is answered in between. `host` is what differs between a browser's worker and Node's.

import { Chat, knowsThinking, refuseHopeless } from './chat.js';
import { Engine } from './engine.js';
import { QuernError, asQuernError, isOf, toWire } from './errors.js';
import { compute, generate } from './generate.js';
import { Hasher } from './hasher.js';
import { instantiate } from './instance.js';
import { Progress } from './progress.js';
import {
  CHAT, COMPLETE, CONTROL, COUNT, DETOKENIZE, DONE, DOWNLOAD, ERROR, EVENT, FATAL, LOAD, LOGITS, NOTICE, PING, PONG, PROFILE, READY, STOP,
  TOKENIZE,
} from './protocol.js';
import { Renderer } from './renderer.js';
import { chooseVariant, defaultThreads } from './variant.js';

const NO_MARKS = { open: -1, close: -1 };

/** The same chunks; while one is awaited, `work` is done, a little each time, until it says that nothing is left. */
async function* whileAwaiting(chunks, work) {
  const iterator = chunks[Symbol.asyncIterator]();
  let more = true;
  try {
    for (;;) {
      const next = iterator.next();
      more &&= work();
      const { done, value } = await next;
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return();
  }
}

export class Service {
  #host;
  #engine = null;
  #chat = null;
  #jobs = new Map();            // id -> job, of all that is not answered
  #turn = Promise.resolve();    // of the conversation

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
      return this.#download(message, emit);
    },
    [CHAT]: (message, job, emit) => this.#inTurn(() => this.#reply(message, job, emit)),
    [COMPLETE]: (message, job, emit) => this.#inTurn(() => this.#continue(message, job, emit)),
    [LOGITS]: (message, job) => this.#inTurn(() => this.#logits(message, job)),
    [PROFILE]: () => this.#inTurn(() => this.#engine.profile()),
    [TOKENIZE]: ({ text }) => this.#engine.tokenize(text),
    [DETOKENIZE]: ({ ids }) => this.#engine.detokenize(ids),
    [COUNT]: async ({ messages, thinking }) => (await this.#chat.prompt(messages, thinking)).ids.length,
  };

  #inTurn(work) {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  // --- loading ---

  async #load({ source, options }, emit) {
    const { build, scalar } = chooseVariant(options.variant);
    const { obstacle } = this.#host;
    const threads = obstacle ? 1 : options.threads ?? defaultThreads(this.#host.hardwareThreads);
    const starting = this.#host.compile(build, options.wasmUrl).then((module) => this.#start(module, threads));
    const progress = new Progress(emit);
    const { opened, instance, hasher } = await this.#open(source, options, starting, progress);
    this.#engine = new Engine(instance, { ...options, threads: instance.threads, scalar, fileSize: opened.total });
    if (!obstacle) this.#host.post({ type: CONTROL, memory: this.#engine.buffer, ...this.#engine.control });
    await this.#read(opened, progress);
    hasher.close();
    progress.end('load');
    this.#chat = new Chat(this.#engine, this.#renderer());
    if (obstacle) this.#host.post({ type: NOTICE, text: `quern: ${obstacle}` });
    return this.#info();
  }

  /** Threads that do not start (a blocked script, a busy phone) cost speed, not the model. */
  async #start(module, threads) {
    try {
      return { ...await instantiate(this.#host.glue, module, threads), threads };
    } catch (error) {
      if (error.code !== 'env/worker' || threads === 1) throw error;
      this.#host.post({ type: NOTICE, text: 'quern: the engine\'s threads did not start, so one thread is used.' });
      return { ...await instantiate(this.#host.glue, module, 1), threads: 1 };
    }
  }

  #renderer() {
    const renderer = new Renderer(this.#host.startTemplateWorker);
    return (template, variables) => renderer.render(template, variables);
  }

  /** Opens a source while the engine starts. */
  async #open(source, options, starting, progress) {
    const hashing = starting.then((instance) => new Hasher(instance));
    const notice = ({ code, message }) => this.#host.post({ type: NOTICE, text: `quern: ${code}: ${message}` });
    const onBytes = (n) => progress.add(n, this.#engine?.fileSize());
    const opening = this.#host.openParts(source, { ...options, hasher: hashing, notice, onBytes });
    const [opened, instance, hasher] = await Promise.all([opening, starting, hashing]);
    progress.begin(opened);
    return { opened, instance, hasher };
  }

  /** What the engine refuses is no model, and is not kept. */
  async #read({ parts, discard }, progress) {
    try {
      for (const { chunks } of parts) for await (const chunk of whileAwaiting(chunks, () => this.#engine.warm())) this.#engine.feed(chunk);
      this.#engine.finish();
    } catch (error) {
      if (isOf('model', error)) await discard();
      throw error;
    } finally {
      progress.stop();
    }
  }

  /** Only stores a model. The engine lends its hash and is not used otherwise. */
  async #download({ source, options }, emit) {
    const { build } = chooseVariant();
    const starting = this.#host.compile(build, options.wasmUrl).then((module) => instantiate(this.#host.glue, module, 1));
    const progress = new Progress(emit);
    const { opened } = await this.#open(source, { ...options, mustStore: true }, starting, progress);
    try {
      for (const { chunks } of opened.parts) for await (const _ of chunks) await this.#host.rest();
    } finally {
      progress.stop();
    }
    progress.end();
  }

  /** The engine's facts and what only this side knows. */
  #info() {
    return { name: '', license: '', ...this.#engine.facts, thinking: knowsThinking(this.#chat.template), memory: this.#engine.memory() };
  }

  // --- replies ---

  async #reply({ messages, options: { thinking, ...options } }, job, emit) {
    const { ids, startsThinking } = await this.#chat.prompt(messages, thinking, { mustFit: true });
    const thinks = startsThinking || (thinking !== false && knowsThinking(this.#chat.template));
    const marks = this.#engine.thinkingMarks();
    return generate(this.#engine, job, { ids, startsThinking, thinks, marks }, options, emit);
  }

  async #continue({ prompt, options }, job, emit) {
    if (typeof prompt === 'string') refuseHopeless(this.#engine, prompt.length);
    const ids = typeof prompt === 'string' ? this.#engine.tokenize(prompt) : prompt;
    if (ids.length === 0) throw new QuernError('use/empty', 'There is nothing to do: the prompt is empty.');
    return generate(this.#engine, job, { ids, startsThinking: false, thinks: false, marks: NO_MARKS }, options, emit);
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

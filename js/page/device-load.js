// SPDX-License-Identifier: MIT
// A model on a graphics device, which may be lost at any time, with all that it holds. Then the model is loaded again
// for the processor, in a new worker, and what was under way is asked again there. The engine gives the same bits on
// both, so it repeats every event; those that were told before are left out, and a reply goes on where it was. A sum of
// them shows that they are equal. So nothing of an engine, of a grammar or of a sampler need be taken along, and no
// other code knows of a loss.

import { abortable } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { inNode } from '../shared/host.js';

const LOST = 'gpu/lost';

/** Failures of a load that may be the device's: it is lost, refuses the work, or has no memory for it. */
const OF_DEVICE = [LOST, 'env/gpu', 'mem/load'];

/** Of events: their number, and a hash (FNV-1a with 32 bits). */
const BEGIN = Object.freeze({ n: 0, sum: 0x811C9DC5 });
const FACTOR = 0x01000193;

const lost = (what, cause) => new QuernError(LOST, `The graphics device was lost, and ${what}.`, { cause });

const differs = () => lost('the reply cannot go on, because the processor has said something else');

/** Events that tell how far something is. Which of them come depends on time. */
const isProgress = ({ type }) => type === 'prefill' || type === 'progress';

function added({ n, sum }, text) {
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), FACTOR);
  return { n: n + 1, sum };
}

/** A request, which may be sent twice and tells each event once. */
class Request {
  #what;                  // type and payload
  #how;
  #call;                  // under way
  #isAgain = false;
  #isStopped = false;
  #told = BEGIN;          // events that the caller knows
  #repeated = BEGIN;      // events of the call that is under way
  #reached = [0, -1];     // progress that was told: whether the text is read, and how much
  #cached;                // tokens of the cache, as was told before the loss
  #ids = [];              // of tool calls, which are chosen at random, by number of the call
  #renamed = new Map();   // ids that are chosen again -> those that were told

  constructor(what, how) {
    this.#what = what;
    this.#how = how;
  }

  /** Sends it. What would be transferred is copied, since it may be sent again. */
  async send(rpc) {
    this.#isAgain = this.#call !== undefined;
    this.#repeated = BEGIN;
    const { signal } = this.#how;
    this.#call = rpc.call(...this.#what, { signal, onEvent: (event) => this.#take(event) });
    this.#passStop();
    const answer = await this.#call.promise;
    if (this.#isBehind) throw differs();
    return this.#isAgain ? this.#corrected(answer) : answer;
  }

  /** A reply that is asked again ends no sooner than where it was. */
  stop() {
    this.#isStopped = true;
    this.#passStop();
  }

  end() { for (const one of this.#how.transfer ?? []) one.close?.(); }

  get #isBehind() { return this.#repeated.n < this.#told.n; }

  #passStop() { if (this.#isStopped && !this.#isBehind) this.#call?.stop(); }

  #tell(event) { return this.#how.onEvent?.(event); }

  #take(given) {
    if (isProgress(given)) return this.#isAgain ? this.#progressAgain(given) : this.#progress(given);
    const event = given.id ? { ...given, id: this.#idOf(given) } : given;
    const isNew = !this.#isBehind;
    this.#repeated = added(this.#repeated, JSON.stringify(event));
    if (isNew) {
      this.#told = this.#repeated;
      return this.#tell(event);
    }
    if (!this.#isBehind && this.#repeated.sum !== this.#told.sum) throw differs();
    this.#passStop();
    return undefined;
  }

  #idOf({ index, id }) {
    const told = (this.#ids[index] ??= id);
    this.#renamed.set(id, told);
    return told;
  }

  #progress(event) {
    const isText = Number(event.phase === 'text');
    this.#reached = [isText, event.done];
    if (isText) this.#cached = event.cached;
    return this.#tell(event);
  }

  /** Tells progress only if it is further than what was told. */
  #progressAgain(event) {
    const [wasText, was] = this.#reached;
    const isText = Number(event.phase === 'text');
    if (this.#isBehind || isText < wasText || (isText === wasText && event.done <= was)) return undefined;
    return this.#progress(isText ? { ...event, cached: this.#cached ?? event.cached } : event);
  }

  #corrected(answer) {
    const { usage, toolCalls = [], unfinishedCall = {} } = answer.value ?? {};
    if (usage) usage.cachedTokens = this.#cached ?? usage.cachedTokens;
    for (const call of [...toolCalls, unfinishedCall]) call.id = this.#renamed.get(call.id) ?? call.id;
    return answer;
  }
}

/** Stands for the connection to the device's worker, and later to the processor's. */
class Connection {
  #rpc;
  #device;                // the connection that may be lost
  #again;                 // loads the model for the processor
  #moving = null;         // a promise, since the device was lost
  #facts = {};            // of info, that have changed
  #leave = new AbortController();

  constructor({ rpc, answer }, again) {
    this.#rpc = this.#device = rpc;
    this.#again = async (signal) => {
      const found = await again({ signal, quantize: answer.quantize });
      this.#facts = { ...found.answer, gpu: Object.freeze({ ...answer.gpu, lost: true }) };
      this.#rpc = found.rpc;
    };
  }

  call(type, payload, { signal, ...how } = {}) {
    const request = new Request([type, payload], { signal, ...how });
    return { promise: this.#run(request, signal).finally(() => request.end()), stop: () => request.stop() };
  }

  async #run(request, signal) {
    try {
      if (!this.#moving) return await request.send(this.#device);
    } catch (error) {
      if (error?.code !== LOST) throw error;
    }
    this.#moving ??= this.#move();
    await (signal ? abortable(this.#moving, signal) : this.#moving);
    return { ...this.#facts, ...await request.send(this.#rpc) };
  }

  async #move() {
    await this.#device.close(lost('its worker has ended'));
    const { signal } = this.#leave;
    try {
      await this.#again(signal);
    } catch (error) {
      throw signal.aborted ? signal.reason : lost(`the model cannot be loaded for the processor: ${error.message.replace(/\.$/, '')}`, error);
    }
    const [say, text] = [inNode ? 'warn' : 'info', 'quern: the graphics device was lost, and the processor goes on.'];
    console[say](text);
  }

  async close(reason) {
    this.#leave.abort(reason);
    await this.#moving?.catch(() => {});
    await this.#rpc.close(reason);
  }
}

/**
 * Starts as `start` does. With 'auto' a device that fails while the model is loaded leaves it to the processor.
 * @param {(platform: any, type: string, source: any, options: any) => Promise<{rpc: any, answer: any}>} start
 * @returns {Promise<{rpc: any, answer: any}>} rpc: has `call` and `close`
 */
export async function startOnDevice(start, platform, type, source, options) {
  const again = (more) =>
    start(platform, type, source, { ...options, onProgress: undefined, ...more, backend: 'cpu' });
  const { signal, onProgress } = options;
  const started = await start(platform, type, source, options).catch((error) => {
    if (!OF_DEVICE.includes(error.code) || options.backend !== 'auto') throw error;
    return again({ signal, onProgress });
  });
  return started.answer.backend === 'cpu' ? started : { ...started, rpc: new Connection(started, again) };
}

// SPDX-License-Identifier: MIT
// A library with a played model. It writes up to `parallel` replies side by side, and the others wait. The question
// decides the reply: "Write 30." pieces, "Talk." without end, "Think." first, "Fail." in the middle, "Break." the
// engine, "Busy." too many at once, "Call NAME JSON" in each line a tool, whose result it repeats. If a test wants
// vision (globalThis.playedVision), it looks at images, at "Stare." without end, and stores the media in globalThis.shown.
// What is asked in the background is counted (globalThis.inBackground) and answered by globalThis.playedTitle; never if that
// is no text.
import { QuernError } from '../../js/index.js';
import { Reply } from '../../js/page/reply.js';

const INFO = { name: 'played', architecture: 'played', contextSize: 4096, contextLength: 40960, thinking: true, threads: 2, memory: { used: 1 } };
const PARALLEL = 8;

/** Number of pieces before a failure, and of thinking. */
const MIDDLE = 30;

/** Parses a question. */
class Task {
  #pieces = 0;
  #asked;
  #push;
  isBegun = false;

  constructor(asked, push, { signal, onPrefill }, settle) {
    Object.assign(this, { settle, begin: () => onPrefill?.({ phase: 'text', done: 10, total: 10, cached: 0 }) });
    this.look = (images) => onPrefill?.({ phase: 'vision', done: 40 * images, total: 100 * images, image: 1, images });
    this.#asked = asked;
    this.#push = push;
    this.drop = () => settle(({ reject }) => reject(signal.reason));
    signal?.addEventListener('abort', this.drop);
  }

  asks(word) { return this.#asked.startsWith(word); }

  get isAtMiddle() { return this.#pieces === MIDDLE; }

  write(text) {
    this.#push({ type: this.asks('Think') && this.#pieces < MIDDLE ? 'thinking' : 'text', text });
    this.#pieces++;
    if (this.#pieces >= Number(/Write (\d+)/.exec(this.#asked)?.[1] ?? Infinity)) this.end('stop');
    if (this.isAtMiddle && this.asks('Fail')) this.fail('model/nonfinite', 'The model computed something that is no number.');
  }

  end(finishReason) {
    const usage = { promptTokens: 10, cachedTokens: 0, completionTokens: this.#pieces };
    this.settle(({ resolve }) => resolve({ finishReason, usage, timings: { waitMs: 0, prefillMs: 1, decodeMs: 1, tokensPerSecond: 9 } }));
  }

  fail(...error) {
    this.settle(({ reject }) => reject(new QuernError(...error)));
  }
}

const USAGE = { promptTokens: 10, cachedTokens: 0, completionTokens: 1 };
const TIMINGS = { waitMs: 0, prefillMs: 1, decodeMs: 1, tokensPerSecond: 9 };

/** A reply of these events. */
const played = (events, more = {}) => new Reply((push) => {
  events.forEach(push);
  const result = { text: events[0].text, thinking: '', finishReason: 'stop', usage: USAGE, timings: TIMINGS, ...more };
  return { promise: Promise.resolve(result), stop() {} };
});

class PlayedModel {
  info = { ...INFO, vision: globalThis.playedVision ? { layers: 2, maxTokens: 256 } : null };
  #writer;
  #tasks = new Map();     // id -> reply that is written or waits
  #last = 0;

  constructor() {
    const rules = { createScriptURL: String };
    globalThis.playedPolicy ??= globalThis.trustedTypes?.createPolicy('quern', rules) ?? rules;
    this.#writer = new Worker(globalThis.playedPolicy.createScriptURL('./played-writer.js'));
    this.#writer.addEventListener('message', ({ data }) => this.#write(data));
  }

  /** Calls the tools that a question names, if they are offered. */
  #call(asked, { tools = [] }) {
    globalThis.offered = tools;
    const calls = asked.map(([, name, given]) => ({ id: crypto.randomUUID(), name, arguments: JSON.parse(given) }));
    const missing = calls.find(({ name }) => !tools.some((tool) => tool.name === name));
    if (missing) return played([{ type: 'text', text: `There is no ${missing.name}.` }]);
    const events = calls.map((call, index) => ({ type: 'tool-call', text: '', index, ...call }));
    return played(events, { finishReason: 'tool-calls', toolCalls: calls });
  }

  chat(messages, options) {
    if (options.priority === 'background') return this.#title(options);
    globalThis.shown = messages.map((message) => (typeof message.content === 'string' ? message.content : message.content.map(({ type }) => type)));
    const last = messages.at(-1);
    if (last.role === 'tool') return played([{ type: 'text', text: `It said: ${last.content}` }]);
    const asked = [...last.content.matchAll?.(/^Call (\S+) (\{.*\})$/gm) ?? []];
    if (asked.length) return this.#call(asked, options);
    const { content: said } = messages.findLast(({ role }) => role === 'user');
    const parts = typeof said === 'string' ? [{ type: 'text', text: said }] : said;
    const content = parts.find(({ type }) => type === 'text')?.text ?? 'Write 3.';
    return new Reply((push) => {
      const id = ++this.#last;
      let task;
      const promise = new Promise((resolve, reject) => {
        task = new Task(content, push, options, (how) => {
          if (!this.#tasks.delete(id)) return;
          this.#writer.postMessage({ id });
          how({ resolve, reject });
          this.#admit();
        });
      });
      task.images = parts.filter(({ type }) => type !== 'text').length;
      this.#tasks.set(id, task);
      if (options.signal?.aborted) task.drop();
      if (task.asks('Busy')) task.fail('use/busy', 'Played: 69 replies.', { detail: { parallel: 4, waiting: 64 } });
      this.#admit();
      return { promise, stop: () => task.end('aborted') };
    });
  }

  #title({ signal, tools = [], toolChoice }) {
    globalThis.titleTools = [toolChoice, ...tools.map(({ name }) => name)].join();
    globalThis.inBackground = (globalThis.inBackground ?? 0) + 1;
    const title = globalThis.playedTitle ?? '';
    return new Reply(() => ({
      promise: new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        if (typeof title === 'string') resolve({ text: title, finishReason: 'stop' });
      }),
      stop() {},
    }));
  }

  async forget() {}

  async countTokens(messages) {
    if (typeof messages === 'string') return Math.ceil(messages.length / 4);
    return messages.reduce((sum, { content }) => sum + (typeof content === 'string' ? 10 : content.length * 100), 0);
  }

  async dispose() {
    this.#writer.terminate();
    for (const task of this.#tasks.values()) task.fail('engine/disposed', 'The model has been disposed of.');
  }

  #write(pieces) {
    if (globalThis.isHeld) return;    // a test holds the replies back
    for (const [id, text] of pieces) {
      const task = this.#tasks.get(id);
      task?.write(text);
      if (task?.isAtMiddle && task.asks('Break')) for (const each of [...this.#tasks.values()]) each.fail('engine/trap', 'The engine crashed (played).');
    }
  }

  #admit() {
    for (const [id, task] of [...this.#tasks].slice(0, PARALLEL)) {
      if (task.isBegun) continue;
      task.isBegun = true;
      if (task.images) setTimeout(() => task.look(task.images));
      if (task.asks('Stare')) continue;
      task.begin();
      this.#writer.postMessage({ id, from: 0 });
    }
  }
}

export const load = async () => new PlayedModel();

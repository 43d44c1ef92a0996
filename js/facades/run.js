// SPDX-License-Identifier: MIT
// Runs a conversation with tools: after each reply that calls tools, the functions run, their results are added, and
// the next reply follows; for the reader all of them are one Reply. It works outside of the engine, over any object
// with chat().

import { abortable, reasonOf } from '../shared/clock.js';
import { badParam } from '../shared/errors.js';
import { Reply } from '../page/reply.js';
import { judged } from '../page/standard.js';
import { isRecord } from '../shared/kinds.js';
import { integer, isFields, read } from '../page/values.js';

const MOST_STEPS = 100;
const STEPS = 8;

/** Most letters of an exception that the model is told. */
const MOST_WORDS = 1000;

const MEDIA = ['image', 'video'];

function isPart(part) {
  if (!isRecord(part)) return false;
  return part.type === 'text' ? typeof part.text === 'string' : MEDIA.includes(part.type) && part.type in part;
}

/** Whether a function's result is a list of parts with an image or a video, which is no JSON. */
const isSeen = (value) => Array.isArray(value) && value.every(isPart) && value.some(({ type }) => MEDIA.includes(type));

/** Converts a function's result to what the model reads. */
function contentOf(value) {
  if (typeof value === 'string' || isSeen(value)) return value;
  return JSON.stringify(value) ?? '';
}

/** The result in an event: its text, and all its parts if there is more. */
function told(content) {
  if (typeof content === 'string') return { content };
  return { content: content.flatMap(({ text = [] }) => text).join('\n\n'), parts: content };
}

/** The reason why a function failed; it may have thrown anything. */
function wordsOf(error) {
  try {
    return String(error?.message ?? error).slice(0, MOST_WORDS);
  } catch {
    return 'it failed';
  }
}

/** Copies an object's own fields, and the named ones that it may inherit. */
function fieldsOf(object, path, inherited = []) {
  const names = new Set([...Object.keys(object), ...inherited]);
  const fields = Array.from(names, (name) => [name, read(object, name, `${path}.${name.slice(0, 64)}`)]);
  return Object.fromEntries(fields.filter(([, value]) => value != null));
}

/** Converts arguments with a library's schema; its objections are told to the model. */
async function argumentsOf(schema, given) {
  const { value, issues } = await judged(schema, given);
  if (!issues) return value;
  const steps = ({ path = [] }) => path.map((step) => String(step?.key ?? step)).join('.');
  throw new Error(issues.map((issue) => `${steps(issue) && `${steps(issue)}: `}${issue.message}`).join('; '));
}

function toolOf(tool, name) {
  const path = `options.tools.${name.slice(0, 64)}`;
  if (!isRecord(tool)) throw badParam(path, 'must be an object with execute');
  const { execute, ...said } = fieldsOf(tool, path, ['description', 'parameters', 'inputSchema', 'execute']);
  if (typeof execute !== 'function') throw badParam(`${path}.execute`, 'must be a function');
  const work = async (given, call) =>
    Reflect.apply(execute, tool, [await argumentsOf(said.parameters ?? said.inputSchema, given), call]);
  return { said: { ...said, name }, execute: work };
}

function toolsOf(tools) {
  const isList = isRecord(tools) && !(Symbol.iterator in tools);
  if (!isList)
    throw badParam('options.tools', 'must be an object of { description, parameters, execute } by their names');
  return new Map(
    Object.keys(tools).map((name) => [name, toolOf(read(tools, name, `options.tools.${name.slice(0, 64)}`), name)]),
  );
}

/** @returns {any} a copy of the options; the signal is checked here too */
function optionsOf(given) {
  if (given != null && !isFields(given)) throw badParam('options', 'must be an object');
  const options = fieldsOf(given ?? {}, 'options');
  const isSignal = (signal) => typeof signal.addEventListener === 'function' && typeof signal.aborted === 'boolean';
  if (options.signal && !isSignal(options.signal)) throw badParam('options.signal', 'must be an AbortSignal');
  if (options.continue)
    throw badParam('options.continue', 'is not available in run(), which begins with a reply of its own');
  const problem = options.maxSteps === undefined ? null : integer(1, MOST_STEPS)(options.maxSteps);
  if (problem) throw badParam('options.maxSteps', problem);
  return options;
}

/** Adds two usages: a prompt counts as often as it is sent. */
const added = (a, b) => Object.fromEntries(Object.entries(b).map(([name, number]) => [name, number + (a[name] ?? 0)]));

/**
 * A required first call is optional later: otherwise the conversation would never end. Forbidden tools stay forbidden.
 */
function laterChoice(choice) {
  if (choice === 'none') return choice;
  return choice?.names ? { names: choice.names } : undefined;
}

class Steps {
  #model;
  #push;
  #messages;
  #tools;
  #options;
  #most;
  #signal;
  #reply = null;      // the reply in progress
  #stopped = false;
  #calls = 0;         // number of calls in earlier replies
  #leave = new AbortController();
  #made = [];         // new messages of the conversation
  #usage = {};

  constructor(model, messages, given, push) {
    if (typeof model?.chat !== 'function') throw badParam('model', 'must be a model, which has chat()');
    const { tools, maxSteps = STEPS, signal, ...options } = optionsOf(given);
    this.#model = model;
    this.#push = push;
    this.#messages =
      typeof messages === 'string'
        ? [{ role: 'user', content: messages }]
        : Array.isArray(messages)
          ? [...messages]
          : messages;
    this.#tools = toolsOf(tools);
    this.#options = options;
    this.#most = maxSteps;
    this.#signal = signal;
  }

  stop() {
    this.#stopped = true;
    this.#reply?.stop();
    this.#leave.abort();
  }

  async run() {
    const onAbort = () => this.#leave.abort(reasonOf(this.#signal));
    this.#signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (let step = 1; ; step++) {
        const result = await this.#step(step);
        const over = result.finishReason !== 'tool-calls' || step === this.#most;
        if (over || !await this.#carryOut(result.toolCalls)) return this.#result(result, step);
      }
    } finally {
      this.#signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Makes one reply. */
  async #step(step) {
    const tools = Array.from(this.#tools.values(), ({ said }) => said);
    const { toolChoice: first, ...options } = this.#options;
    const toolChoice = step === 1 ? first : laterChoice(first);
    const messages = Array.isArray(this.#messages) ? [...this.#messages, ...this.#made] : this.#messages;
    this.#reply = this.#model.chat(messages, {
      ...options,
      ...(toolChoice != null && { toolChoice }),
      tools,
      signal: this.#signal,
    });
    if (this.#stopped) this.#reply.stop();
    for await (const event of this.#reply.events)
      this.#push('index' in event ? { ...event, index: event.index + this.#calls } : event);
    const result = await this.#reply.result;
    const { text: content, thinking, toolCalls } = result;
    this.#made.push({
      role: 'assistant',
      content,
      ...(thinking && { thinking }),
      ...(toolCalls?.length && { toolCalls }),
    });
    this.#usage = added(this.#usage, result.usage);
    return result;
  }

  /** Runs all calls of a reply in parallel. @returns {Promise<boolean>} false: it was stopped */
  async #carryOut(calls) {
    const { signal } = this.#leave;
    const work = Promise.all(calls.map((call, i) => this.#answer(call, i + this.#calls)));
    try {
      this.#made.push(...await abortable(work, signal));
      this.#calls += calls.length;
      return true;
    } catch (error) {
      if (this.#stopped) return false;
      throw error;
    }
  }

  /** The message with the result of a call; if the function fails, the model is told so. */
  async #answer({ id, name, arguments: given }, index) {
    const { signal } = this.#leave;
    let isError = false;
    let content;
    try {
      const tool = this.#tools.get(name);
      if (!tool) throw new Error(`there is no tool '${name}'`);
      content = contentOf(await tool.execute(given, { id, name, signal }));
    } catch (error) {
      isError = true;
      content = `Error: ${wordsOf(error)}`;
    }
    if (!signal.aborted) this.#push({ type: 'tool-result', index, id, name, ...told(content), isError });
    return { role: 'tool', toolCallId: id, content };
  }

  #result(last, steps) {
    const { finishReason } = last;
    const stopped = this.#stopped && finishReason === 'tool-calls';
    return {
      ...last,
      finishReason: stopped ? 'aborted' : finishReason,
      totalUsage: this.#usage,
      steps,
      messages: this.#made,
    };
  }
}

/** Documented in run.d.ts, as is run(). TypeScript infers types here that it would not infer elsewhere. */
export const tool = (given) => given;

/** Documented in run.d.ts. */
export function run(model, messages, options) {
  return new Reply((push) => {
    try {
      const steps = new Steps(model, messages, options, push);
      return { promise: steps.run(), stop: () => steps.stop() };
    } catch (error) {
      return { promise: Promise.reject(error), stop() {} };
    }
  });
}

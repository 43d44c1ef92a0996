// SPDX-License-Identifier: MIT
// What an engine's worker needs for replies that ask for more than most: a grammar, tools, probabilities, a conversation that is shortened. A file of
// its own in the package, which comes with the first of them, and with the first grammar its wasm file.

import { CallGuide } from '../reply/call-guide.js';
import { FLEXIBLE, schemaFlags, grammarOf } from '../reply/constraint.js';
import { QuernError, asQuernError } from '../shared/errors.js';
import { Extra, Guide } from '../reply/extra.js';
import { Grammars } from '../engine/grammar.js';
import { formOf } from '../reply/calls.js';
import { callLimits } from '../reply/tools.js';

export { formOf };
export { promptThatFits } from '../reply/overflow.js';
export { Tools } from '../reply/tools.js';

/** Nobody wants the reply any more. */
const STOPPED = new Error('stopped');

/** Bytes that grammars may take beside a model; and at least, the tree of its vocabulary: for each token, and for the module. */
const MOST = 160 * 2 ** 20;
const [EACH, MODULE] = [96, 2 ** 22];

/** Engines, with what has learnt their tokens. @type {WeakMap<object, Promise<Grammars>>} */
const learnt = new WeakMap();

/** What each holds, in bytes. @type {WeakMap<object, () => number>} */
const held = new WeakMap();

/** Bytes of memory that grammars hold now. */
export const grammarBytes = (engine) => held.get(engine)?.() ?? 0;

/** What the model leaves for grammars of what may be taken. */
function roomOf(engine, allowed) {
  const needed = MODULE + EACH * engine.facts.tokens;
  const { planned, wasm } = engine.memory();
  const room = Math.min(MOST, allowed - Math.max(planned, wasm));
  if (room >= needed) return room;
  const left = Math.max(0, room);
  const message = `What replies are held to takes ${needed} bytes of memory beside the model, but the limit leaves ${left}.`;
  throw new QuernError('mem/plan', message, { phase: 'call', detail: { needed, allowed: left } });
}

async function opened(engine, { compile, allowed }) {
  const room = roomOf(engine, allowed);
  const grammars = await Grammars.open(await compile(), engine, room);
  held.set(engine, () => grammars.bytes);
  return grammars;
}

/** A failure is not remembered. */
async function grammarsOf(engine, means) {
  if (!learnt.has(engine) || (await learnt.get(engine)).isDead) {
    const opening = opened(engine, means);
    opening.catch(() => learnt.delete(engine));
    learnt.set(engine, opening);
  }
  return learnt.get(engine);
}

/** What its text is held to, its calls, or both, and what of their schemas was passed over; no guide: neither. @param {Guide} [text] */
async function guideOf(engine, options, text, open) {
  const { choice, ...calls } = callLimits(options, formOf(engine.chatTemplate(true) || engine.chatTemplate()));
  if (!options.tools?.length) return { guide: text, notes: [] };
  const grammar = calls.text ? compiled(await open(), calls, options) : null;
  const guide = new CallGuide(engine, grammar, choice, { most: options.parallelToolCalls === false ? 1 : undefined, text });
  return { guide, notes: (grammar?.notes ?? []).map((note) => ({ ...note, message: named(note.message, calls) })) };
}

/** What is said of a tool's schema says whose it is. */
const named = (message, { names }) => message.replace(/^The parameters of tool (\d+)/, (_, i) => `The parameters of '${names[i]}'`);

/** The grammar of calls. */
function compiled(grammars, calls, options) {
  try {
    return grammars.compile(calls.kind, calls.text, FLEXIBLE | schemaFlags(options));
  } catch (error) {
    const { code, message, detail } = asQuernError(error, 'call');
    throw new QuernError(code, named(message, calls), { detail });
  }
}

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {{compile: () => Promise<WebAssembly.Module>, allowed: number}} means grammar.wasm; bytes that it and the engine may take together
 * @param {{logprobs?: number}} options of the reply
 * @param {{stopped: boolean}} job that may be stopped before its grammar is compiled, which then is not done
 */
export async function openExtra(engine, means, options, job) {
  const open = async () => {
    const grammars = await grammarsOf(engine, means);
    await new Promise((resolve) => { setTimeout(resolve, 0); });    // steps of others, and messages, come between two compilations
    if (job.stopped) throw STOPPED;
    return grammars;
  };
  try {
    return await extraOf(engine, open, options);
  } catch (error) {
    if (error === STOPPED) return new Extra(engine, options);
    throw error;
  }
}

async function extraOf(engine, open, options) {
  const limits = await grammarOf(options, open);
  const text = limits && new Guide(engine, limits);
  const { guide, notes } = await guideOf(engine, options, text, open).catch((error) => {
    text?.end();
    throw error;
  });
  return new Extra(engine, { ...options, guide, notes: [...limits?.grammar.notes ?? [], ...notes], value: limits?.value });
}

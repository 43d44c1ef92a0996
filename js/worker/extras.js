// SPDX-License-Identifier: MIT
// The code for replies with special demands (a grammar, tools, probabilities, a conversation that is shortened) and for
// models with states. It is a separate file of the package, which the worker fetches for the first such reply. The
// first grammar also fetches its wasm file.

import { CallGuide } from '../reply/call-guide.js';
import { FLEXIBLE, schemaFlags, grammarOf } from '../reply/constraint.js';
import { QuernError, asQuernError } from '../shared/errors.js';
import { Extra } from '../reply/extra.js';
import { Grammars } from '../engine/grammar.js';
import { tooMuch } from '../engine/grammar-compiler.js';
import { Guide } from '../reply/guide.js';
import { formOf } from '../reply/calls.js';
import { callLimits } from '../reply/tools.js';
import { ownerOf } from './shares.js';
import { COMPILE } from './side-kinds.js';
import { SideEnd, sideWorkersOf } from './side-workers.js';

export { formOf };
export { promptThatFits } from '../reply/overflow.js';
export { placesIn } from '../reply/snapshots.js';
export { Tools } from '../reply/tools.js';

/** Memory of a compiler: a grammar, the block made from it, and the source. */
const COMPILER = 120 * 2 ** 20;

/**
 * Most bytes that grammars may take beside a model. The tree of its vocabulary needs at least EACH per token and MODULE
 * for the module.
 */
const MOST = 160 * 2 ** 20;
const [EACH, MODULE] = [96, 2 ** 22];

/** Grammars by engine; each has learnt the engine's tokens. @type {WeakMap<object, Promise<Grammars>>} */
const learnt = new WeakMap();

/** Functions that return the bytes held, by engine. @type {WeakMap<object, () => number>} */
const held = new WeakMap();

/** Bytes of memory that an engine's grammars hold now. */
export const grammarBytes = (engine) => held.get(engine)?.() ?? 0;

/** The bytes of `allowed` that the model leaves for grammars. */
function roomOf(engine, allowed) {
  const needed = MODULE + EACH * engine.facts.tokens;
  const { planned, wasm } = engine.memory();
  const room = Math.min(MOST, allowed - Math.max(planned, wasm));
  if (room >= needed) return room;
  const left = Math.max(0, room);
  const message = `Grammars take ${needed} bytes of memory beside the model, but the limit leaves ${left}.`;
  throw new QuernError('mem/plan', message, { phase: 'call', detail: { needed, allowed: left } });
}

/** Compiles in a side worker. */
function compiling(sides, setup) {
  return async (asked, { owner, job }) => sides.run(COMPILE, asked, { setup, owner, job }).catch((error) => {
    if (!(error instanceof SideEnd) || error.isStopped) throw error;
    throw tooMuch(error.message, error);
  });
}

async function opened(engine, { compile, allowed, host, turns }, who) {
  const limit = roomOf(engine, allowed);
  const sides = sideWorkersOf(host);
  const module = await compile();
  const grammars = await Grammars.open(module, engine, {
    limit, compile: compiling(sides, () => ({ module, limit: Math.min(limit, COMPILER) })),
    through: (steps, { owner }) => turns.through(owner, steps),
  }, who);
  held.set(engine, () => grammars.bytes);
  return grammars;
}

/** The grammars of an engine. A failure to open them is not remembered. */
async function grammarsOf(engine, means, who) {
  if (!learnt.has(engine) || (await learnt.get(engine)).isDead) {
    const opening = opened(engine, means, who);
    opening.catch(() => learnt.delete(engine));
    learnt.set(engine, opening);
  }
  return learnt.get(engine);
}

/**
 * The guide of a reply's text, of its calls, or of both, and notes on ignored keywords of schemas. Without constraints
 * there is no guide.
 * @param {Guide} [text]
 */
async function guideOf(engine, options, text, compile) {
  const { choice, ...calls } = callLimits(options, formOf(engine.chatTemplate(true), engine.facts));
  if (!options.tools?.length) return { guide: text, notes: [] };
  const grammar = calls.text ? await compiled(compile, calls, options) : null;
  const guide = new CallGuide(engine, grammar, choice, {
    most: options.parallelToolCalls === false ? 1 : undefined,
    text,
  });
  return { guide, notes: (grammar?.notes ?? []).map((note) => ({ ...note, message: named(note.message, calls) })) };
}

/** Puts the tool's name into a message about its schema. */
const named = (message, { names }) =>
  message.replace(/^The parameters of tool (\d+)/, (_, i) => `The parameters of '${names[i]}'`);

/** The grammar of calls. */
async function compiled(compile, calls, options) {
  try {
    return await compile(calls.kind, calls.text, FLEXIBLE | schemaFlags(options));
  } catch (error) {
    if (error instanceof SideEnd) throw error;
    const { code, message, detail } = asQuernError(error, 'call');
    throw new QuernError(code, named(message, calls), { detail });
  }
}

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {object} means
 * @param {() => Promise<WebAssembly.Module>} means.compile compiles grammar.wasm
 * @param {number} means.allowed most bytes that grammars and the engine may take together
 * @param {import('./side-lane.js').SideHost} means.host starts the side workers that compile
 * @param {import('./turns.js').Turns} means.turns schedules all other work
 * @param {{logprobs?: number, cacheScope?: number, guest?: number}} options of the reply
 * @param {{stopped: boolean, onStop: () => void}} job may be stopped before its grammar is compiled, and then the
 *   compilation is skipped
 */
export async function openExtra(engine, means, options, job) {
  const who = { owner: ownerOf(options), job };
  const compile = async (kind, text, flags) => (await grammarsOf(engine, means, who)).compile(kind, text, flags, who);
  try {
    return await extraOf(engine, compile, options);
  } catch (error) {
    if (error instanceof SideEnd) return new Extra(engine, options);
    throw error;
  }
}

async function extraOf(engine, compile, options) {
  const limits = await grammarOf(options, compile);
  const text = limits && new Guide(engine, limits);
  const { guide, notes } = await guideOf(engine, options, text, compile).catch((error) => {
    text?.end();
    throw error;
  });
  return new Extra(engine, {
    ...options,
    guide,
    notes: [...(limits?.grammar.notes ?? []), ...notes],
    value: limits?.value,
  });
}

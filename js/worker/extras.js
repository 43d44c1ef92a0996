// SPDX-License-Identifier: MIT
// What an engine's worker needs for replies that ask for more than most: a grammar, tools, probabilities, a conversation that is shortened. A file of
// its own in the package, which comes with the first of them, and with the first grammar its wasm file.

import { CallGuide } from '../reply/call-guide.js';
import { FLEXIBLE, grammarOf } from '../reply/constraint.js';
import { QuernError, asQuernError, badParam } from '../shared/errors.js';
import { Extra, Guide } from '../reply/extra.js';
import { Grammars } from '../engine/grammar.js';
import { callLimits } from '../reply/tools.js';

export { promptThatFits } from '../reply/overflow.js';
export { Tools } from '../reply/tools.js';

/** Nobody wants the reply any more. */
const STOPPED = new Error('stopped');

/** Engines, with what has learnt their tokens. @type {WeakMap<object, Promise<Grammars>>} */
const learnt = new WeakMap();

/** A failure is not remembered. */
async function grammarsOf(engine, compile) {
  if (!learnt.has(engine) || (await learnt.get(engine)).isDead) {
    const opening = compile().then((module) => Grammars.open(module, engine));
    opening.catch(() => learnt.delete(engine));
    learnt.set(engine, opening);
  }
  return learnt.get(engine);
}

/** What its text is held to, or its calls; undefined: neither. */
async function guideOf(engine, options, limits, open) {
  const { choice, text, names } = callLimits(options);
  if (limits && text) {
    limits.grammar.users--;
    throw badParam('options.tools', 'and a grammar of the text exclude each other, unless toolChoice is \'none\'');
  }
  if (limits) return new Guide(engine, limits.grammar);
  if (!options.tools?.length) return undefined;
  return new CallGuide(engine, text ? compiled(await open(), text, names) : null, choice);
}

/** The grammar of calls; what is wrong with a schema says whose it is. */
function compiled(grammars, text, names) {
  try {
    return grammars.compile('calls', text, FLEXIBLE);
  } catch (error) {
    const { code, message, detail } = asQuernError(error, 'call');
    throw new QuernError(code, message.replace(/^The parameters of tool (\d+)/, (_, i) => `The parameters of '${names[i]}'`), { detail });
  }
}

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {() => Promise<WebAssembly.Module>} compile grammar.wasm
 * @param {{logprobs?: number}} options of the reply
 * @param {{stopped: boolean}} job that may be stopped before its grammar is compiled, which then is not done
 */
export async function openExtra(engine, compile, options, job) {
  const open = async () => {
    const grammars = await grammarsOf(engine, compile);
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
  const guide = await guideOf(engine, options, limits, open);
  return new Extra(engine, { logprobs: options.logprobs, guide, value: limits?.value });
}

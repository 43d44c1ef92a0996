// SPDX-License-Identifier: MIT
// Loads a model together with a smaller one that drafts for it, each in a worker of its own: so each has its own
// memory, plan, files and store, and nothing else of a load knows of two models. The smaller one comes first, because
// what it takes is missing from the memory of the other. A separate file of the package, which the first such load
// fetches.

import { QuernError, badParam } from '../shared/errors.js';
import { DRAFT } from '../shared/protocol.js';

/**
 * Options of load() that do not concern the draft model: those of other files, and those of replies. It reads few
 * tokens at a time, since the replies wait for it.
 */
const OTHERS = {
  draft: undefined, sha256: undefined, headers: undefined, vision: false, visionOptions: undefined, quantize: undefined,
  profile: undefined, snapshots: 0, drafts: false, chunk: 16, backend: 'cpu',
};

/** An error of the draft model's source is one of the option. */
function ofOption(error) {
  if (!error.detail?.param?.startsWith('source')) return error;
  const message = error.message.replace(/^\S+ /, '').replace(/\.$/, '');
  return badParam(error.detail.param.replace('source', 'options.draft'), message);
}

function refuseState({ answer }) {
  if (answer.stateBytes)
    throw badParam('options.draft', 'is not for models with a state, such as Qwen3.5, and none of them can be one');
}

/** What is left of the memory limit. */
function leftOf(limit, planned) {
  if (limit === undefined) return undefined;
  if (limit > planned) return limit - planned;
  throw new QuernError('mem/plan', 'The draft model takes all memory of memoryLimit.', { phase: 'load' });
}

/**
 * @param {(platform: any, type: string, source: any, options: any) => Promise<{rpc: any, answer: any}>} startWith
 * @returns {Promise<{rpc: any, answer: any}>} of the model; the draft model ends with it
 */
export async function startDrafted(startWith, platform, type, source, { draft, ...options }) {
  if (options.drafts === false) throw badParam('options.draft', 'and options.drafts: false exclude each other');
  const asked = startWith(platform, type, draft, { ...options, ...OTHERS });
  const helper = await asked.catch((error) => { throw ofOption(error); });
  let main;
  try {
    refuseState(helper);
    const memoryLimit = leftOf(options.memoryLimit, helper.answer.memory.planned);
    main = await startWith(platform, type, source, { ...options, memoryLimit });
    refuseState(main);
    const { port1, port2 } = new MessageChannel();
    const connect = ({ rpc }, message) => rpc.call(DRAFT, message, { transfer: [message.port] }).promise;
    await connect(helper, { port: port1, serves: true });
    helper.rpc.ended.then(() => main.rpc.call(DRAFT, {}).promise.catch(() => {}));
    await connect(main, { port: port2 });
  } catch (error) {
    await Promise.all([helper, main].map((one) => one?.rpc.close(error)));
    throw error;
  }
  main.rpc.ended.then(() => helper.rpc.close(new QuernError('engine/disposed', 'The model has been disposed of.')));
  return main;
}

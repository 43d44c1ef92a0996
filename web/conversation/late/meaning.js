// SPDX-License-Identifier: MIT
// Finds passages by their meaning, with an embedding model that is on this device. It is loaded beside the model in use
// when a question needs it, if there is memory for both, and released when it has had nothing to do for a while. The
// vectors of passages are made once (vectors.js), with progress and a way out: then words alone decide, as they do
// after any failure. Replies in other conversations come first. A chat model's own vectors are not used: without the
// training for it, a causal model's last state tells what comes next and not what a text is about; its use would cost
// minutes for an order that may be worse than that of the words. If the model in use is an embedding model, it serves.
import { announce, button, byId } from '../../shell/dom.js';
import { bytes, duration } from '../../shell/format.js';
import { read, write } from '../../shell/storage.js';
import { joined, list, say } from '../../shell/words.js';
import { place } from '../../model/address.js';
import { CONTEXT, EMBEDDER, besides, findEmbedder, labelOf } from '../../model/late/embedder.js';
import { Vectors, keyOf, likeness, put } from './vectors.js';

/** Whether the visitor wants words alone. */
const KEY = 'quern:words-only';

/** The kind of instruction that Qwen3-Embedding was trained with, for questions only. */
const INSTRUCTION = 'Given a question, retrieve passages of documents that answer the question';

/** Most numbers of a vector. Longer ones of Qwen3-Embedding may be cut: their first numbers count most. */
const MOST_DIM = 1024;

/** Passages of one call, after which a reply elsewhere may come first, and milliseconds between two writes of a row. */
const AT_ONCE = 8;
const WRITE_MS = 3000;

/** Milliseconds until the model is released, and until the remaining time is told. */
const REST_MS = 60_000;
const LEARN_MS = 3000;

/** Kinds of pooling (`info.pooling`) that make no vectors: none, and ranks. */
const NO_VECTORS = [0, 4];

const WORDS_ALONE = say`The passages are found by their words alone.`;

const vectors = new Vectors();
const failed = new Map();     // address of a model -> why it was of no use in this visit
let turn = Promise.resolve();     // comparisons follow each other
let held = null;              // {url, model, timer} of the model that is loaded

/**
 * What there is to compare meanings with.
 * @returns {Promise<?{entry: object, label: string, isOff: boolean, problem: string}>} null: no such model is here
 */
async function present({ library, model }) {
  const entry = findEmbedder(await library.models.list().catch(() => []));
  if (!entry) {
    failed.clear();
    return null;
  }
  const { need, fits } = besides(entry, model);
  const label = labelOf(entry);
  const tooMuch = fits ? ''
    : say`${label} and the model in use need about ${bytes(need)} together, which is much for this device.`;
  return { entry, label, isOff: read(KEY) === true, problem: failed.get(entry.url) ?? tooMuch };
}

/** Whether meanings are compared here. @param {import('../../model/session.js').Session} session */
export async function isUsed(session) {
  const found = await present(session);
  return Boolean(found && !found.isOff && !found.problem);
}

/** Shows where the suggested model is offered. Afterwards the sentences may be others. */
function showSuggested(again) {
  byId('shelf').dataset.wanted = 'embedder';
  byId('model-dialog').addEventListener('close', again, { once: true });
  byId('model-button').click();
}

/**
 * How passages are found, for the visitor.
 * @param {() => void} again shows it anew
 * @param {boolean} suggests whether a model may be suggested
 * @returns {Promise<{says: string, buttons: HTMLElement[]}>}
 */
export async function about(session, again, suggests) {
  const found = await present(session);
  if (!found) {
    if (!suggests || !session.model || !besides(EMBEDDER, session.model).fits) return { says: '', buttons: [] };
    const { label, size } = EMBEDDER;
    const amount = bytes(size);
    const says = say`They are found by their words. With ${label} (${amount}) they are found by their meaning, too.`;
    return { says, buttons: [button(say`Show ${label}`, () => showSuggested(again))] };
  }
  const { label, isOff, problem } = found;
  if (problem) return { says: joined(WORDS_ALONE, problem), buttons: [] };
  const turnTo = (words, off) => button(words, () => {
    write(KEY, off);
    again();
  });
  const says = isOff ? say`They are found by their words.`
    : say`They are found by their words and, with ${label}, by their meaning.`;
  return { says, buttons: [turnTo(isOff ? say`Compare the meaning, too` : say`Compare words only`, !isOff)] };
}

/** Releases the model when it has rested. */
function rest() {
  clearTimeout(held.timer);
  held.timer = setTimeout(() => {
    held.model.dispose().catch(() => {});
    held = null;
  }, REST_MS);
}

/** The model, loaded. */
async function loaded({ entry, label }, session, signal) {
  const { model, choice, library } = session;
  if (model && choice.kind === 'url' && place(choice.source) === place(entry.url)) return model;
  if (held?.url === entry.url) clearTimeout(held.timer);
  else {
    await held?.model.dispose();
    held = null;
    const { threads, backend } = read('quern:settings') ?? {};
    const chosen = { ...(threads > 0 && { threads }), ...(backend && { backend }) };
    held = { url: entry.url, model: await library.load(entry.url, { ...chosen, contextSize: CONTEXT, signal }) };
  }
  if (NO_VECTORS.includes(held.model.info.pooling)) throw new Error(say`${label} makes no vectors of texts.`);
  return held.model;
}

/** Waits until no reply is written. */
async function whenFree(line, signal) {
  while (document.documentElement.dataset.state === 'working') {
    line.say(say`Waiting until the reply is written…`);
    await new Promise((done) => { setTimeout(done, 200); });
    signal.throwIfAborted();
  }
}

/** Tells the progress, and the time that is left once it can be foretold. @returns {(done: number) => void} */
function progressIn(line, all, before) {
  const start = performance.now();
  return (done) => {
    const ms = performance.now() - start;
    const left = ms > LEARN_MS && done > before ? (ms * (all - done)) / (done - before) : 0;
    line.say(list(say`Reading ${done} of ${all} passages`, left && say`${duration(left)} left`));
  };
}

/** Makes the vectors of a row that are missing. */
async function fill(row, passages, model, { conversation, tell, pause, signal }) {
  const { dim } = row;
  let written = performance.now();
  try {
    while (row.done < passages.length) {
      await pause();
      const next = passages.slice(row.done, row.done + AT_ONCE).map(({ text }) => text);
      const onProgress = ({ done }) => tell(done);
      const { vectors: made } = await model.embed(next, { dimensions: dim, signal, onProgress });
      for (const vector of made) put(row, row.done++, vector);
      tell(0);
      if (performance.now() - written < WRITE_MS) continue;
      await vectors.keep(conversation, row);
      written = performance.now();
    }
  } finally {
    await vectors.keep(conversation, row);
  }
}

/** The rows of all texts, with all their vectors. */
async function complete({ texts, cuts }, { entry, model, line, conversation, isReply, signal }) {
  const dim = Math.min(MOST_DIM, model.info.dim);
  const rows = [];
  for (const [i, passages] of cuts.entries()) {
    if (!passages.length) continue;
    const key = await keyOf(entry.url, passages);
    const fresh = () => ({ key, text: texts[i].text, dim, done: 0, codes: new Int8Array(passages.length * dim) });
    rows[i] = await vectors.read(conversation, key) ?? fresh();
  }
  const all = cuts.reduce((sum, passages) => sum + passages.length, 0);
  const made = () => rows.reduce((sum, { done }) => sum + done, 0);
  const show = progressIn(line, all, made());
  const tell = (more) => show(made() + more);
  const pause = async () => { if (!isReply) await whenFree(line, signal); };
  for (const [i, passages] of cuts.entries())
    if (passages.length) await fill(rows[i], passages, model, { conversation, tell, pause, signal });
  return rows;
}

async function compared(job, how) {
  const found = await present(how.session);
  if (!found || found.isOff || found.problem) return undefined;
  const { label, entry } = found;
  const { signal, abort } = how;
  const line = how.showWork(say`Loading ${label}`, abort, say`Compare words only`);
  try {
    if (!how.isReply) await whenFree(line, signal);
    const model = await loaded(found, how.session, signal);
    const { vectors: [asked] } = await model.embed([job.question], {
      instruction: INSTRUCTION, dimensions: Math.min(MOST_DIM, model.info.dim), signal,
    });
    const rows = await complete(job, { ...how, entry, model, line });
    return job.cuts.map((passages, i) => passages.map((_, at) => likeness(rows[i], at, asked)));
  } catch (error) {
    if (signal.aborted) return undefined;
    const { message } = how.session.library.explain(error);
    failed.set(entry.url, message);
    how.onFail(joined(WORDS_ALONE, message));
    return undefined;
  } finally {
    line.remove();
    if (held) rest();
  }
}

/**
 * Compares the meaning of passages with that of a question.
 * @param {{texts: Array<{text: string}>, cuts: Array<Array<{text: string}>>, question: string}} job cuts: the passages
 *   of each text
 * @param {object} how
 * @param {import('../../model/session.js').Session} how.session
 * @param {string} how.conversation its id, or ''
 * @param {typeof import('../reading.js').showWork} how.showWork
 * @param {(sentence: string) => void} [how.onFail]
 * @param {AbortSignal} [how.signal] of the reply that asks; without one, replies come first
 * @returns {Promise<number[][] | undefined>} the likeness of each passage; undefined: words alone decide
 */
export function compare(job, { signal: reply, onFail = announce, ...how }) {
  const stop = new AbortController();
  const abort = () => stop.abort();
  reply?.addEventListener('abort', abort, { once: true });
  const work = () => compared(job, { ...how, onFail, signal: stop.signal, abort, isReply: Boolean(reply) });
  turn = turn.catch(() => {}).then(work).finally(() => reply?.removeEventListener('abort', abort));
  return turn;
}

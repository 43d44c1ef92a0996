// SPDX-License-Identifier: MIT
// What keeping a conversation costs and saves, anywhere: reading it anew and keeping it, then, with an engine that knows nothing, going on from what
// is kept; how soon replies stop meanwhile; and what the store itself takes to read and write as many bytes, in pieces of the same size.

/**
 * @param {{load: Function}} quern @param {object} what
 * @param {any} what.source @param {object} what.options of load
 * @param {string} what.text which has as many tokens as the conversation is to have, nearly
 * @param {number} what.token the only likely one's id
 * @returns {Promise<object>} milliseconds to the first token (`firstMs`), of those before the first step (`waitMs`), and of keeping (`keepMs`)
 */
export async function turn({ load }, { source, options, text, token }) {
  const model = await load(source, { ...options, contextSize: 2560, threads: 2 });
  const start = performance.now();
  const { usage, timings } = await model.chat(text, { save: 'talk', maxTokens: 1, temperature: 0, logitBias: { [token]: 100 } }).result;
  const firstMs = performance.now() - start;
  const [{ bytes, tokens }] = await model.saved();
  const keepMs = performance.now() - start - firstMs;
  await model.dispose();
  return { firstMs, keepMs, bytes, tokens, promptTokens: usage.promptTokens, cachedTokens: usage.cachedTokens, ...timings };
}

/** When a conversation that comes back is stopped, in ms from the start. */
const DELAYS = [0, 60, 150, 400];

/**
 * Longest time from stop() to the end of a reply: of one that goes on from what is kept while that is read (`restoring`), and of others while a
 * conversation is written (`appending`), of which there were `n`. Afterwards the store is as it was.
 */
export async function stops({ load }, { source, options, text, token }) {
  const chosen = { temperature: 0, logitBias: { [token]: 100 } };
  const begin = () => load(source, { ...options, contextSize: 2560, kvPositions: 5120, threads: 2 });
  const stopped = async (reply) => {
    const start = performance.now();
    reply.stop();
    await reply.result;
    return performance.now() - start;
  };
  const restoring = [];
  for (const delay of DELAYS) {
    const model = await begin();    // one that knows nothing of it
    const reply = model.chat(text, { save: 'talk', maxTokens: 256, ...chosen });
    await new Promise((done) => { setTimeout(done, delay); });
    restoring.push(await stopped(reply));
    await model.dispose();
  }
  const model = await begin();
  await model.chat(text, { save: 'copy', maxTokens: 1, ...chosen }).result;
  let isWritten = false;
  const written = model.saved().then(() => { isWritten = true; });
  const appending = [];
  while (!isWritten) {
    const reply = model.complete('the', { maxTokens: 256, ...chosen });
    for await (const _ of reply) break;
    appending.push(await stopped(reply));
  }
  await written;
  await model.forget('copy');
  await model.dispose();
  return { restoring: Math.max(...restoring), appending: Math.max(...appending), n: appending.length };
}

/** Reads a file of this size in pieces, each to where `roomAt` says. @returns {Promise<number>} milliseconds */
async function readAll(file, size, piece, roomAt) {
  const start = performance.now();
  for (let at = 0; at < size; at += piece) {
    const room = roomAt(at).subarray(0, size - at);
    const got = await file.read(at, room);
    if (typeof got !== 'number') room.set(got);     // some give bytes of their own
  }
  return performance.now() - start;
}

/**
 * Milliseconds of a store's reading the kept file (over and over into one piece of memory, and into as much as it is long, which nobody has touched, as
 * pages of a new engine are), and of writing another one like it, flushed.
 * @param {object} store @param {number} piece bytes
 */
export async function plain(store, piece) {
  const [name] = (await store.list()).filter((one) => one.startsWith('kv-'));
  const from = await store.open(name, { write: false });
  const to = await store.open('plain', { write: true });
  const size = await from.size();
  const room = new Uint8Array(new SharedArrayBuffer(piece));
  const readMs = await readAll(from, size, piece, () => room);
  const fresh = new SharedArrayBuffer(size);
  const freshMs = await readAll(from, size, piece, (at) => new Uint8Array(fresh, at, Math.min(piece, size - at)));
  const start = performance.now();
  for (let at = 0; at < size; at += piece) await to.write(at, room);
  await to.flush();
  const writeMs = performance.now() - start;
  for (const file of [from, to]) await file.close();
  await store.remove('plain');
  return { readMs, freshMs, writeMs };
}

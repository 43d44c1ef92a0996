// SPDX-License-Identifier: MIT
// What keeping a conversation costs and saves, anywhere: reading it anew and keeping it, then, with an engine that knows nothing, going on from what
// is kept; and what the store itself takes to read and write as many bytes, in pieces of the same size.

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
  const { usage, timings } = await model.chat(text, { keep: 'talk', maxTokens: 1, temperature: 0, logitBias: { [token]: 100 } }).result;
  const firstMs = performance.now() - start;
  const [{ bytes, tokens }] = await model.kept();
  const keepMs = performance.now() - start - firstMs;
  await model.dispose();
  return { firstMs, keepMs, bytes, tokens, promptTokens: usage.promptTokens, cachedTokens: usage.cachedTokens, ...timings };
}

/** Milliseconds of a store's reading the kept file, and of writing another one like it, flushed. @param {object} store @param {number} piece bytes */
export async function plain(store, piece) {
  const [name] = (await store.list()).filter((one) => one.startsWith('kv-'));
  const from = await store.open(name, { write: false });
  const to = await store.open('plain', { write: true });
  const size = await from.size();
  const room = new Uint8Array(new SharedArrayBuffer(piece));
  const start = performance.now();
  for (let at = 0; at < size; at += piece) {
    const got = await from.read(at, room);
    if (typeof got !== 'number') room.set(got);     // some give bytes of their own
  }
  const readMs = performance.now() - start;
  for (let at = 0; at < size; at += piece) await to.write(at, room);
  await to.flush();
  const writeMs = performance.now() - start - readMs;
  for (const file of [from, to]) await file.close();
  await store.remove('plain');
  return { readMs, writeMs };
}

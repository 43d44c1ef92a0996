// SPDX-License-Identifier: MIT
// A page without a bundler. The address after the # has the name of one of these tasks and, in JSON, what it is given and where to report.
import * as quern from 'quern';
import { answer } from './answer.js';
import { compare } from './compare.js';
import { MemoryStore } from './memory-store.mjs';

/** Ends a long reply in its middle. */
async function stop({ model: source }) {
  const model = await quern.load(source, { threads: 2 });
  const reply = model.complete('the', { temperature: 0 });
  let first;
  for await (const _ of reply) {
    first ??= performance.now();
    reply.stop();
  }
  const { finishReason, usage } = await reply.result;
  await model.dispose();
  return { finishReason, tokens: usage.completionTokens, threads: model.info.threads, first };
}

/** Which of some files have other logits than are expected. */
async function golden({ files, ...given }) {
  const wrong = [];
  for (const file of files) {
    const found = await compare(quern.load, { ...given, ...file });
    if (found.wrong.length) wrong.push({ model: file.model, wrong: found.wrong });
  }
  return { wrong };
}

/** Loads twice, with a store of the page's own. */
async function store({ model: source }) {
  const cache = new MemoryStore();
  const cached = [];
  let outcome;
  for (let i = 0; i < 2; i++) {
    let last;
    outcome = await answer(quern.load, source, { store: cache, onProgress: (progress) => { last = progress; } });
    cached.push(last?.cached);
  }
  return { ...outcome, cached };
}

/** What is seen in images: of each its tokens' rows and columns, and the values. */
async function look({ model: source, images, ...options }) {
  const model = await quern.load(source, { threads: 1, store: false, ...options });
  const looks = [];
  for (const image of images) {
    const { rows, columns, values } = await model.look(image);
    looks.push({ rows, columns, values: Array.from(values) });
  }
  await model.dispose();
  return { looks, threads: model.info.threads };
}

/**
 * How fast one reply is written by different numbers of threads (null: as many as are chosen), in turns. Of each number the best tokens per second
 * of the rounds after the first `warm`, and how many threads worked at the end.
 */
async function speeds({ model: source, counts, warm, rounds, token }) {
  const models = [];
  for (const threads of counts) models.push(await quern.load(source, { threads: threads ?? undefined, contextSize: 256, store: false, profile: true }));
  const best = counts.map(() => 0);
  for (let round = 0; round < warm + rounds; round++) {
    for (const [i, model] of models.entries()) {
      const { timings } = await model.complete('the', { maxTokens: 32, temperature: 0, logitBias: { [token]: 100 } }).result;
      if (round >= warm) best[i] = Math.max(best[i], timings.tokensPerSecond);
    }
  }
  const working = [];
  for (const model of models) {
    working.push((await model.profile()).threads);
    await model.dispose();
  }
  return { claimed: navigator.hardwareConcurrency, best, working };
}

const tasks = { chat: ({ model, ...options }) => answer(quern.load, model, options), stop, golden, store, look, speeds };

const [task, given] = location.hash.slice(1).split(/=(.*)/s);

const { report, ...asked } = JSON.parse(decodeURIComponent(given));

const outcome = await tasks[task](asked).catch((error) => ({ error: `${error.code ?? error.name}: ${error.message}` }));
await fetch(report, { method: 'POST', mode: 'no-cors', body: JSON.stringify({ ...outcome, isolated: crossOriginIsolated }) });

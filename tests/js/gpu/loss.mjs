// SPDX-License-Identifier: MIT
// Run by loss.test.mjs: what a model says whose device is destroyed, and what one says that never left the processor.
// Arguments: what is asked, and the numbers of submits behind which the device is destroyed; 0: there is none.

import { rmSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from '../../../dist/node.js';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';
import { random } from '../../fixtures/random.mjs';
import { vlProjector } from '../../fixtures/vl-projector.mjs';
import { tell } from './engines.mjs';

const NANO = `${PROJECT}/${GOLDEN}/nano.Q8_0.gguf`;
const SEEING = `${PROJECT}/tests/fixtures/vision/models/dense/q8_0`;
const WORKER = new URL('./losing-worker.mjs', import.meta.url);

function open(source, at, options = {}) {
  process.env.QUERN_LOSE_AT = at;
  const given = { contextSize: 512, threads: 1, store: false, drafts: false, ...options };
  return load(source, at ? { ...given, backend: 'webgpu', workerUrl: WORKER.href } : given);
}

/** The outcome of a promise, without what depends on time. */
const outcome = (promise) => promise.then(({ timings: _, ...result }) => result, ({ code, name }) => code ?? name);

/** Reads a reply; `act` is called with each of its events. */
async function read(reply, act = () => {}) {
  const events = [];
  for await (const event of reply.events) {
    events.push(event);
    act(event);
  }
  return { events: joined(events), ...await outcome(reply.result) };
}

/** Neighbours are joined by their readers, as they come. */
function joined(events) {
  const all = [];
  for (const { type, text, logprobs = [], ...rest } of events) {
    if (all.at(-1)?.type !== type) all.push({ type, text: '', logprobs: [], ...rest });
    all.at(-1).text += text;
    all.at(-1).logprobs.push(...logprobs);
  }
  return all;
}

const ASKED = {
  /** Several at once, of all kinds, and then one more; no prefix is in the cache when they begin. */
  async several(at) {
    const model = await open(NANO, at, { parallel: 4 });
    const ask = (prompt, options) => read(model.complete(prompt, { maxTokens: 24, temperature: 1, ...options }));
    const replies = await Promise.all([
      ask('one two three', { seed: 1, logprobs: 2, repeatPenalty: 1.2 }),
      ask('some words', { seed: 2, regex: '[a-m ]+' }),
      ask('many a word', { seed: 3, stop: ['e'] }),
      ask('few', { seed: 4 }), ask('a lot', { seed: 5 }),
    ]);
    const [{ vectors }, tokens] = await Promise.all([model.embed(['a text', 'another']), model.countTokens('some text')]);
    const after = await ask('one two three', { seed: 6 });
    const { backend, gpu } = model.info;
    await model.dispose();
    return { said: { replies, vectors: vectors.map((vector) => [...vector]), tokens, after: after.text }, backend, isLost: gpu?.lost };
  },

  /** An image, while it is encoded or later. */
  async image(at) {
    const model = await open(`${SEEING}/model.gguf`, at, { vision: new Blob([await vlProjector('dense')]) });
    const next = random(3);
    const data = Uint8Array.from({ length: 96 * 64 * 4 }, () => next() * 256);
    const content = [{ type: 'image', image: { data, width: 96, height: 64 } }, { type: 'text', text: 'What is it?' }];
    const said = await read(model.chat([{ role: 'user', content }], { maxTokens: 8, temperature: 1, seed: 1 }));
    const { backend, gpu } = model.info;
    await model.dispose();
    return { said, backend, isLost: gpu?.lost };
  },

  /** Those who leave when the device is lost, and a file that is gone then. */
  async leaving(at) {
    const folder = await mkdtemp(join(tmpdir(), 'quern-loss-'));
    const file = join(folder, 'model.gguf');
    const said = [];
    const channel = new BroadcastChannel('lost');
    for (const how of ['abort', 'stop', 'dispose', 'remove']) {
      await copyFile(NANO, file);
      const model = await open(file, at);
      const controller = new AbortController();
      const reply = model.complete('one two', { maxTokens: 400, signal: controller.signal, logitBias: { 257: -Infinity, 258: -Infinity } });
      const acts = {
        abort: () => controller.abort(), stop: () => reply.stop(), dispose: () => model.dispose(), remove: () => rmSync(file),
      };
      channel.onmessage = () => { acts[how](); };
      const { finishReason, name, code } = await reply.result.catch((error) => error);
      said.push(`${how}: ${finishReason ?? (name === 'QuernError' ? code : name)}`);
      await model.dispose();
    }
    channel.close();
    await rm(folder, { recursive: true });
    return { said };
  },
};

const [what, ...places] = process.argv.slice(2);
for (const at of places) tell(await ASKED[what](Number(at)));
process.exit();

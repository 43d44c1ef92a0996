// SPDX-License-Identifier: MIT
// Run by replies.test.mjs: replies side by side, a prefix that is used again, and saved conversations, on a device and
// on the processor.

import { Generation } from '../../../js/reply/generation.js';
import { goldenBytes, open, tell } from './engines.mjs';

const NEUTRAL = { temperature: 0, topP: 1, topK: 0, minP: 0, bias: [], stops: [], seed: 1 };
const LONG = Array.from({ length: 70 }, (_, i) => 20 + (i * 7) % 200);
const PROMPTS = [[5, 6, 7, 8, 9, 10, 11], LONG, [40, 41], [60, 61, 62, 63]];

async function reply({ engine, runner }, ids, options) {
  const prompt = { ids: Int32Array.from(ids), channels: [], inside: null, defaults: NEUTRAL };
  const work = new Generation(engine, prompt, { ...NEUTRAL, maxTokens: 12, ...options }, () => {});
  const { text, finishReason, usage } = await runner.add(work, { stopped: false, onStop() {} });
  return { text, finishReason, usage };
}

/** The header and the records of a saved conversation, as text. */
async function saved({ engine, runner }, ids) {
  const owner = { scope: 0, guest: 0 };
  while (!await runner.turns.run(owner, (ms) => engine.identify(Math.ceil(ms))));
  const sequence = engine.sequence();
  sequence.set(Int32Array.from(ids), 'held');
  const records = [Buffer.from(sequence.save('a name'))];
  const room = engine.room(engine.recordBytes);
  for (let taken; taken !== false;) {
    taken = await runner.turns.run(owner, () => sequence.take(room));
    if (taken) records.push(Buffer.from(room));
  }
  return records.map((record) => record.toString('base64'));
}

for (const onDevice of [false, true]) {
  const opened = await open(await goldenBytes(process.argv[2]), { onDevice, parallel: 3 });
  const beside = await Promise.all(PROMPTS.map((ids, i) => reply(opened, ids, { temperature: i, seed: 3 + i })));
  const again = await reply(opened, [...LONG.slice(0, 50), 9, 9, 9], { seed: 5, temperature: 1 });
  const conversation = await saved(opened, LONG);
  tell({ onDevice, beside, again, conversation });
}
process.exit();

// SPDX-License-Identifier: MIT
// Run by replies.test.mjs: replies side by side, a prefix that is used again, and conversations that are saved and read
// by another engine, on a device and on the processor.

import { Generation } from '../../../js/reply/generation.js';
import { goldenBytes, open, tell } from './engines.mjs';

const NEUTRAL = { temperature: 0, topP: 1, topK: 0, minP: 0, bias: [], stops: [], seed: 1 };
const LONG = Array.from({ length: 70 }, (_, i) => 20 + (i * 7) % 200);
/** Tokens with which two prompts begin: there a model with states remembers its state. */
const SHARED = 50;
const PROMPTS = [[5, 6, 7, 8, 9, 10, 11], LONG, [40, 41], [60, 61, 62, 63]];

/** Of each reply: tokens that were drafted, and those of them that were right. @type {number[][]} */
let drafts = [];

async function reply({ engine, runner }, ids, options) {
  const marks = ids.length > SHARED ? [SHARED] : undefined;
  const prompt = { ids: Int32Array.from(ids), channels: [], inside: null, defaults: NEUTRAL, marks };
  const work = new Generation(engine, prompt, { ...NEUTRAL, maxTokens: 12, ...options }, () => {});
  const { text, finishReason, usage } = await runner.add(work, { stopped: false, onStop() {} });
  const { draftedTokens = 0, acceptedTokens = 0, ...counts } = usage;    // drafts depend on time
  drafts.push([draftedTokens, acceptedTokens]);
  return { text, finishReason, usage: counts };
}

const owner = { scope: 0, guest: 0 };

/** A conversation that is held, and the header of its file. */
async function held({ engine, runner }, ids) {
  while (!await runner.turns.run(owner, (ms) => engine.identify(Math.ceil(ms))));
  const sequence = engine.sequence();
  sequence.set(Int32Array.from(ids), 'held');
  return { sequence, header: Buffer.from(sequence.save('a name')) };
}

/** The header and the records of a saved conversation. */
async function saved(opened, ids) {
  const { engine, runner } = opened;
  const { sequence, header } = await held(opened, ids);
  const records = [header];
  const room = engine.room(engine.recordBytes);
  for (let taken; taken !== false;) {
    taken = await runner.turns.run(owner, () => sequence.take(room));
    if (taken) records.push(Buffer.from(room));
  }
  return records;
}

/** Gives an engine the records. @returns {Promise<string[]>} what it says to each */
async function restore(opened, ids, records) {
  const { sequence } = await held(opened, ids);
  const room = opened.engine.room(opened.engine.recordBytes);
  const answers = records.slice(1).map((record) => {
    room.set(record);
    return sequence.give(room);
  });
  sequence.free();
  return answers;
}

const bytes = await goldenBytes(process.argv[2]);
const options = { parallel: 3, snapshots: 16 };
for (const onDevice of [false, true]) {
  const opened = await open(bytes, { onDevice, ...options });
  const beside = await Promise.all(PROMPTS.map((ids, i) => reply(opened, ids, { temperature: i, seed: 3 + i })));
  const again = await reply(opened, [...LONG.slice(0, SHARED), 9, 9, 9], { seed: 5, temperature: 1 });
  const records = await saved(opened, LONG);
  const other = await open(bytes, { onDevice, ...options });
  const answers = await restore(other, LONG, records);
  const later = await reply(other, [...LONG, 7, 8], { seed: 6, temperature: 1 });
  const repeated = await reply(other, Array.from({ length: 60 }, (_, i) => 20 + (i % 20) * 7), { maxTokens: 100 });
  const conversation = records.map((record) => record.toString('base64'));
  tell({ onDevice, drafts, said: { beside, again, conversation, answers, later, repeated } });
  drafts = [];
}
process.exit();

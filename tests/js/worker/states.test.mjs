// SPDX-License-Identifier: MIT
// The engine with models that have a state beside their pages: an imitated one (tests/c/played_model.h), and Qwen3.5. Each turn of a
// conversation computes only its new tokens, and gives the same reply as an engine that has read nothing before: when
// the conversation continues, when the last question or reply is made again, after losing its pages, beside other
// conversations, and from a saved file after another load. The states themselves: tests/c/test_states.c.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import playedGlue from '../../../build/played/quern-simd.mjs';
import glue from '../../../build/wasm/node/quern-simd.mjs';
import { Service } from '../../../js/worker/service.js';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { opened, partOf, testHost } from '../support/engine-host.mjs';

/** The prompt repeats thinking after the last question only, and each reply begins with a thought, maybe empty. */
const TEMPLATE = `{%- set ns = namespace(last=0) %}
{%- for message in messages %}{% if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content and loop.index0 > ns.last %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls %}{{- '<tool_call>' + call.function.name + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{% if not enable_thinking %}{{- '\\n</think>\\n\\n' }}{% endif %}{% endif %}`;

const PAGE = 32;

const OPTIONS = { temperature: 1, topP: 1, topK: 0, minP: 0, stops: [], seed: 5, maxTokens: 12, bias: [], thinking: false };

const compiledFrom = (path) => readFile(new URL(`../../../build/${path}`, import.meta.url)).then((bytes) => WebAssembly.compile(bytes));

/** The engine's glue, whose models all have states. */
async function recurrent(options) {
  const wasm = await playedGlue(options);
  wasm._played_recurrent(1);
  return wasm;
}

const SUBJECTS = {
  'an imitated model': {
    model: tinyModel({ hidden: 64, layers: 2, context: 2048, template: TEMPLATE }), glue: recurrent, compiled: compiledFrom('played/quern-simd.wasm'), stateBytes: 2 * 4000 * 8,
  },
  'Qwen3.5': {
    model: tiny35({ context: 2048, template: TEMPLATE, keyHeads: 2, valueHeads: 4, size: 32 }), glue, compiled: compiledFrom('wasm/quern-simd.wasm'),
    stateBytes: 2 * 4 * (4 * 32 * 32 + 3 * 8 * 32),
  },
};

/** The one whose tests run. */
let subject;

/** Opens a worker's service in this thread. @param {object} [options] options of load() */
async function open(options = {}, store = undefined) {
  const waiting = new Map();
  const told = [];
  let receive;
  let n = 0;
  const part = partOf(subject.model);
  const host = testHost({
    glue: { 32: async () => subject.glue },
    compile: () => subject.compiled,
    openParts: async (_, { onBytes }) => ({
      cached: false, async discard() {}, ...opened(part),
      parts: [{ size: part.size, chunks: (async function* chunks() { for await (const chunk of part.chunks) { onBytes(chunk.length); yield chunk; } })() }],
    }),
    storeOf: () => store,
    rest: () => turn(),
    post({ type, id, value, error, text }) {
      if (type === 'notice') told.push(text);
      if (type === 'fatal') for (const { reject } of waiting.values()) reject(new Error(error.message));
      if (type === 'done') waiting.get(id).resolve(value);
      if (type === 'error') waiting.get(id).reject(Object.assign(new Error(error.message), error));
    },
  });
  const service = new Service({
    ...host, listen: (handler) => { receive = handler; },
    template: () => import('../../../js/worker/template.js'), extras: () => import('../../../js/worker/extras.js'),
  });
  const ask = (message) => new Promise((resolve, reject) => {
    waiting.set(++n, { resolve, reject });
    receive({ ...message, id: n });
  });
  const info = await ask({ type: 'load', source: {}, options: { threads: 1, variant: 'simd', contextSize: 1024, ...options } });
  const idsOf = (messages, more = {}) => ask({ type: 'prompt', messages, media: [], options: { ...OPTIONS, ...more } }).then(({ value }) => value);
  let work;
  const chat = async (messages, more = {}) => {
    const answer = await ask({ type: 'chat', messages, media: [], options: { ...OPTIONS, ...more } });
    work = answer.work;
    return answer.value;
  };
  return { service, info, idsOf, chat, told, saved: () => ask({ type: 'saved' }).then(({ value }) => value), get work() { return work; } };
}

/** The reply of a new engine, which remembers nothing. */
async function alone(messages, more) {
  const { chat } = await open();
  return (await chat(messages, more)).text;
}

/** Tokens of a reply's header after its first one. */
const OPEN = [...'assistant\n'].length + 1;
let imStart;
const beforeReply = (ids) => ids.lastIndexOf(imStart) + OPEN;
const beforeQuestion = (ids) => ids.lastIndexOf(imStart, ids.lastIndexOf(imStart) - 1);

const SYSTEM = { role: 'system', content: 'You are a mill. '.repeat(6) };
const said = (content) => ({ role: 'user', content });
const wrote = ({ text, thinking }) => ({ role: 'assistant', content: text, ...(thinking && { thinking }) });

/** Runs a turn. Checks that a new engine gives the same reply, and that `expected` tokens came from the cache. */
async function turnOf(model, messages, expected, more = {}) {
  const reply = await model.chat(messages, more);
  assert.equal(reply.usage.cachedTokens, expected, JSON.stringify(messages).slice(-200));
  assert.equal(reply.text, await alone(messages, { ...more, save: undefined }));
  return reply;
}

for (const [name, one] of Object.entries(SUBJECTS)) {
  suite(name, () => {
    before(async () => {
      subject = one;
      const { idsOf } = await open();
      [imStart] = await idsOf([{ role: 'user', content: 'x' }]);
    });

    test('what is told of a model with states, and of one without', async () => {
      const { info } = await open();
      assert.deepEqual([info.stateBytes, info.snapshots], [subject.stateBytes, 3]);
      for (const snapshots of [0, 1, 64]) assert.equal((await open({ snapshots })).info.snapshots, snapshots);
    });

    test('a conversation of several turns computes what is new: as it goes on, asked otherwise, answered anew', async () => {
      for (const thinking of [false, true]) {
        const model = await open();
        const messages = [SYSTEM, said('What is ground here, and for whom?')];
        let ids = await model.idsOf(messages, { thinking });
        let reply = await turnOf(model, messages, 0, { thinking });
        for (const question of ['And at night?', 'Who owns the river that drives it?', 'Tell me more. '.repeat(10)]) {
          messages.push(wrote(reply), said(question));
          reply = await turnOf(model, messages, beforeReply(ids), { thinking });
          ids = await model.idsOf(messages, { thinking });
          await turnOf(model, messages, beforeReply(ids), { thinking, seed: 9 });                            // again, with another seed
          await turnOf(model, [...messages.slice(0, -1), said('No: tell me less.')], beforeQuestion(ids), { thinking });
          reply = await turnOf(model, messages, beforeReply(ids), { thinking });                              // again, with the first seed
        }
        assert.equal(model.work.recomputed, 0);
      }
    });

    test('thinking that is switched on or off parts behind what begins the reply', async () => {
      const model = await open();
      const messages = [said('What is ground here?')];
      const ids = await model.idsOf(messages);
      await turnOf(model, messages, 0);
      await turnOf(model, messages, beforeReply(ids), { thinking: true });
    });

    test('steps with tools go on behind what began the reply, or further', async () => {
      const model = await open();
      const messages = [SYSTEM, said('How is the wind?')];
      await turnOf(model, messages, 0);
      for (const place of ['mill', 'river', 'sea']) {
        const known = beforeReply(await model.idsOf(messages));
        messages.push(
          { role: 'assistant', content: '', toolCalls: [{ id: place, name: 'wind', arguments: { place } }] },
          { role: 'tool', toolCallId: place, content: `${place}: strong` },
        );
        await turnOf(model, messages, known);
      }
    });

    test('what the system says is known to the next conversation', async () => {
      const model = await open();
      await turnOf(model, [SYSTEM, said('One')], 0);
      const ids = await model.idsOf([SYSTEM, said('One')]);
      await turnOf(model, [SYSTEM, said('Another')], beforeQuestion(ids));
      await turnOf(model, [said('Without')], 0);
    });

    /** Three rounds of conversations, of which each computes only what it must. */
    async function inTurn(model, names) {
      const talks = names.map((name) => ({ messages: [said(`I am ${name}. ${name.repeat(40)}`)], known: 0 }));
      for (let round = 0; round < 3; round++) {
        for (const talk of talks) {
          const reply = await turnOf(model, talk.messages, talk.known);
          talk.known = beforeReply(await model.idsOf(talk.messages));
          talk.messages.push(wrote(reply), said(`Round ${round}`));
        }
      }
    }

    test('four conversations in turn: each goes on where it was', async () => {
      const model = await open({ snapshots: 12, kvPositions: 4096 });
      await inTurn(model, ['a', 'b', 'c', 'd']);
    });

    test('two in turn, with the snapshots that there are by default', async () => {
      const model = await open({ kvPositions: 4096, parallel: 1 });
      await inTurn(model, ['a', 'b']);
    });

    test('who is let go for others says the same, with any number of snapshots', async () => {
      const talks = ['a', 'b', 'c'].map((name) => [said(`I am ${name}.`)]);
      const { info: { endTokens } } = await open();
      const more = { maxTokens: 300, bias: endTokens.map((id) => [id, -Infinity]) };
      const expected = await Promise.all(talks.map((messages) => alone(messages, more)));
      for (const snapshots of [0, 3, 12]) {
        const model = await open({ contextSize: 512, kvPositions: 600, parallel: 3, snapshots });
        const replies = await Promise.all(talks.map((messages) => model.chat(messages, more)));
        assert.deepEqual(replies.map(({ text }) => text), expected);
        assert.ok(model.work.letGo > 0 || snapshots < 12, JSON.stringify(model.work));
      }
    });

    // --- saved ---

    test('a saved conversation goes on after another load, and its file has the last turn\'s state', async () => {
      const disk = new Disk();
      const messages = [SYSTEM, said('What is ground here, and for whom?')];
      const more = { save: 'talk' };
      let known = 0;
      for (const question of ['And at night?', 'Who owns the river?', 'Tell me more. '.repeat(10)]) {
        const model = await open({}, new MemoryStore(disk));
        const reply = await turnOf(model, messages, known, more);
        known = beforeReply(await model.idsOf(messages));
        const [{ tokens }] = await model.saved();
        assert.equal(tokens, known - known % PAGE);
        messages.push(wrote(reply), said(question));
        const next = await turnOf(model, messages, known, more);      // in the same engine too
        known = beforeReply(await model.idsOf(messages));
        assert.equal((await model.saved())[0].tokens, known - known % PAGE);
        messages.push(wrote(next), said('Go on.'));
        assert.deepEqual(model.told, []);
      }
      const size = disk.size;
      const model = await open({}, new MemoryStore(disk));
      const last = messages.slice(0, -2);
      const reply = await turnOf(model, last, known, more);           // the last reply again
      await turnOf(model, [...last, wrote(reply), said('Go on.')], known);    // here the engine remembers the state, too
      assert.equal((await model.saved())[0].tokens, known - known % PAGE);
      assert.equal(disk.size, size);
    });

    test('a file that is damaged anywhere, cut, or of another turn costs time alone', async () => {
      const disk = new Disk();
      const messages = [SYSTEM, said('What is ground here, and for whom?')];
      const first = await open({}, new MemoryStore(disk));
      const reply = await first.chat(messages, { save: 'talk' });
      await first.saved();
      const known = beforeReply(await first.idsOf(messages));
      const next = [...messages, wrote(reply), said('And at night?')];
      const [[name, bytes]] = disk.files;
      const record = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(32, true));
      const records = Math.floor((bytes.length - 4096) / record);
      assert.equal(records, Math.floor(known / PAGE) + new DataView(bytes.buffer, bytes.byteOffset).getUint32(52, true));
      const text = await alone(next);
      for (let i = 0; i <= records; i++) {
        for (const cut of [false, true]) {
          const broken = cut ? bytes.slice(0, 4096 + i * record) : bytes.slice();
          if (!cut && i < records) broken[4096 + i * record + 600] ^= 4;
          const theirs = new Disk();
          theirs.files.set(name, broken);
          const model = await open({}, new MemoryStore(theirs));
          const { text: found, usage } = await model.chat(next, { save: 'talk' });
          assert.deepEqual([found, usage.cachedTokens], [text, i === records ? known : 0], `record ${i}, ${cut}`);
          assert.equal(model.told.length, !cut && i < records ? 1 : 0);
          const [{ tokens }] = await model.saved();
          const now = beforeReply(await model.idsOf(next));
          assert.equal(tokens, now - now % PAGE);
          const again = await open({}, new MemoryStore(theirs));
          assert.equal((await again.chat(next, { save: 'talk' })).usage.cachedTokens, now, `record ${i}, ${cut}: whole again`);
        }
      }
    });

    test('a conversation that cannot be saved whole is not saved', async () => {
      const model = await open({ saveMaxBytes: 20_000 }, new MemoryStore());
      await model.chat([SYSTEM, said('What is ground here?')], { save: 'talk' });
      assert.deepEqual(await model.saved(), []);
    });
  });
}

// SPDX-License-Identifier: MIT
// Conversations of Qwen3.5: its template's prompts and refusals, replies that begin inside their thinking, and its
// calls. tests/fixtures/qwen35 has what jinja2 makes of the published template.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { languageModel } from '../../../dist/prompt-api.js';
import { checkMessages } from '../../../js/page/messages.js';
import { Chat } from '../../../js/reply/chat.js';
import { FORMS, formOf } from '../../../js/reply/calls.js';
import { ReplyText } from '../../../js/reply/text.js';
import { placesIn } from '../../../js/reply/snapshots.js';
import { Tools } from '../../../js/reply/tools.js';
import { atOnce } from '../../../js/shared/steps.js';
import { render as renderInSlices } from '../../../js/worker/template.js';
import { scriptedModel } from '../../fixtures/scripted.mjs';
import { collect, rejectsWith, render } from '../support/helper.mjs';

const fixture = (name) => readFile(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8');
const CASES = JSON.parse(await fixture('qwen35/cases.json'));
const CALLS = JSON.parse(await fixture('qwen35/calls.json'));
const OURS = await fixture('qwen35/qwen35-text.jinja');

/** Templates of 4B and 9B, and of 0.8B and 2B: ours, and published ones. */
const LARGE = [OURS, await fixture('jinja/templates/qwen3.5.jinja')];
const SMALL = [`{% set think_by_default = false %}${OURS}`, await fixture('jinja/templates/qwen3.5-small.jinja')];

/** Cases with a call that follows the last question without thinking: the published templates write an empty thought there. */
const EMPTY = ['call', 'two calls, two results', 'a list as argument', 'none as content'];
const withEmpty = (text) => text.replaceAll('assistant\n<tool_call>', 'assistant\n<think>\n\n</think>\n\n<tool_call>');

/** A conversation of the cases as a caller writes it: calls and results have ids. */
function written(messages) {
  const ids = messages.flatMap(({ tool_calls: calls = [] }, i) => calls.map((_, k) => `${i}.${k}`));
  let [made, answered] = [0, 0];
  return messages.map(({ tool_calls: calls, ...message }) => ({
    ...message,
    ...(message.role === 'tool' && { tool_call_id: ids[answered++] }),
    ...(calls && { tool_calls: calls.map((call) => ({ ...call, id: ids[made++] })) }),
  }));
}

/** The prompt's text of a conversation. */
async function promptOf(template, given, { enable_thinking: thinking, tools: shown, add_generation_prompt: generationPrompt }) {
  const engine = {
    contextSize: 1e6, chatTemplate: () => template, longestToken: () => 8, tokenize: (text) => ({ '<think>': [8], '</think>': [9] }[text] ?? [1, 2]),
    facts: { marks: 'qwen', card: {}, added: { before: [], after: [] } },
  };
  const messages = checkMessages(written(given));
  const tools = shown && new Tools(messages, { tools: shown.map((tool) => tool.function) }, FORMS.tagged);
  let said;
  const asker = {
    run: async (work) => work(), through: async (steps) => atOnce(steps),
    tokens: async (text, mode, sentinel) => { said = text.replaceAll(String.fromCodePoint(sentinel), ''); return Int32Array.of(1); },
  };
  await new Chat(engine, renderInSlices).prompt(messages, { thinking, tools, generationPrompt }, asker);
  return said;
}

for (const { name, messages, options, rendered, small = rendered } of CASES) {
  test(`the template: ${name}`, async () => {
    for (const [templates, said] of [[LARGE, rendered], [SMALL, small]]) {
      for (const [i, template] of templates.entries()) {
        const wanted = i === 1 && EMPTY.includes(name) ? withEmpty(said) : said;
        const variables = { messages, add_generation_prompt: true, ...options };
        if (wanted.error) assert.throws(() => render(template, variables), { message: wanted.error });
        else assert.equal(render(template, variables), wanted);
        if (!wanted.error) assert.equal(await promptOf(template, messages, options), wanted);
        else if (messages.length === 0 || name === 'error: role') await rejectsWith(promptOf(template, messages, options), 'use/param');
        else await rejectsWith(promptOf(template, messages, options), 'use/param', new RegExp(`^messages do not suit the model's chat template: ${wanted.error}$`));
      }
    }
  });
}

test('without a template, tools and calls are spelled as the template does', async () => {
  const isPlain = ({ messages, rendered }) => !rendered.error && !messages.some((message) => message.reasoning_content || /<think>/.test(message.content));
  const plain = CASES.filter(({ options: { tools } }) => tools).filter(isPlain);
  assert.equal(plain.length, 7);
  for (const { name, messages, options, rendered, small = rendered } of plain)
    assert.equal(await promptOf('', messages.map((message) => ({ ...message, content: message.content?.trim() })), options), small, name);
});

test('the template says which form its calls have', () => {
  for (const template of [...LARGE, ...SMALL]) assert.equal(formOf(template, { callForm: 'json' }), FORMS.tagged);
});

// --- where states are remembered ---

const SPECIAL = ['<|im_start|>', '<|im_end|>', '<think>', '</think>', '<tool_response>', '</tool_response>', '<tool_call>', '</tool_call>'];

/** Tokens: the special ones, and letters. */
const tokenize = (text) => text.split(/(<\|im_(?:start|end)\|>|<\/?(?:think|tool_response|tool_call)>)/).flatMap((part) => (
  SPECIAL.includes(part) ? [-1 - SPECIAL.indexOf(part)] : Array.from(part, (letter) => letter.codePointAt())));
const textOf = (ids) => ids.map((id) => (id < 0 ? SPECIAL[-1 - id] : String.fromCodePoint(id))).join('');

test('a state is remembered behind the system message, before the last question, and before the think tag', () => {
  const places = placesIn({ facts: { marks: 'qwen' }, tokenize });
  for (const { name, rendered, small = rendered, options: { add_generation_prompt: begins = true } } of CASES) {
    for (const text of rendered.error || !begins ? [] : [rendered, small]) {
      const ids = tokenize(text);
      const found = places(ids).map((at) => textOf(ids.slice(0, at)));
      const system = /^<\|im_start\|>system\n[^]*?<\|im_end\|>\n/.exec(text)?.[0];
      const [question] = /[^]*(?=<\|im_start\|>user\n(?!<tool_response>))/.exec(text);
      const header = text.slice(0, text.lastIndexOf('<think>'));
      assert.ok(header.endsWith('<|im_start|>assistant\n'));
      assert.deepEqual(found, [...new Set([system, question, header])].filter(Boolean), name);
    }
  }
});

// --- calls ---

const isMark = (part) => /^<\/?tool_call>$/.test(part);

/** A text in pieces of each small size, and cut once at every place. The marks are tokens, which stay whole. */
function* cuts(text) {
  const parts = text.split(/(<\/?tool_call>)/).filter(Boolean);
  for (const size of [1, 2, 3, 7, 1000])
    yield parts.flatMap((part) => (isMark(part) ? [part] : part.match(new RegExp(`[^]{1,${size}}`, 'g'))));
  for (const [i, part] of parts.entries())
    for (let at = 1; at < part.length && !isMark(part); at++) yield parts.toSpliced(i, 1, part.slice(0, at), part.slice(at));
}

/** What a reply of these pieces says: its text, its calls, and the arguments as they were told. */
function said(pieces) {
  const told = [];
  const emit = ({ type, index, delta }) => { if (type === 'tool-call-delta') told[index] = (told[index] ?? '') + delta; };
  const { channels } = new Tools([], { tools: [...CALLS.tools.map((tool) => tool.function), { name: 'nope' }] }, FORMS.tagged);
  const reply = new ReplyText({ channels, inside: null, stops: [], emit });
  for (const piece of pieces) if (!reply.mark(piece)) reply.push(piece);
  reply.end();
  const { text, toolCalls } = reply.parts;
  return { text, told: told.map((json) => JSON.parse(json)), calls: toolCalls.map(({ name, arguments: given }) => ({ name, arguments: given })) };
}

for (const { name, text, content, calls } of CALLS.cases) {
  if (name === 'python truth stays text') continue;     // it is read as what the template means by it
  test(`a call: ${name}`, () => {
    const isCall = !calls.some(({ error }) => error);
    const wanted = isCall ? { text: content, told: calls.map((call) => call.arguments), calls } : { text, told: [], calls: [] };
    for (const pieces of cuts(text)) assert.deepEqual(said(pieces), wanted, JSON.stringify(pieces));
  });
}

test('calls go back through the template, and are the same again', () => {
  const asked = { role: 'user', content: 'x' };
  const shown = (...messages) => render(OURS, { messages: [asked, ...messages], tools: CALLS.tools, add_generation_prompt: false });
  for (const { name, content, calls } of CALLS.cases.filter(({ name, calls: [call] }) => call && !call.error && name !== 'python truth stays text')) {
    const made = calls.map((call) => ({ type: 'function', function: call }));
    const reply = shown({ role: 'assistant', content, tool_calls: made }).slice(shown().length).replace(/^<\|im_start\|>assistant\n|<\|im_end\|>\n$/g, '');
    assert.deepEqual(said(cuts(reply).next().value).calls, calls, name);
  }
});

// --- replies ---

/** A model with such a template whose every reply has these pieces. */
const speaking = (template, pieces) => load([
  new File([JSON.stringify({ chat_template: template })], 'tokenizer_config.json'), new File([scriptedModel(pieces)], 'scripted.gguf'),
], { threads: 1 });

const ask = (model, options, messages = 'Is it?') => model.chat(messages, { temperature: 0, presencePenalty: 0, ...options });

/** What a reply is, in short. */
async function reply(...asked) {
  const { text, thinking, finishReason, stopText, value, usage } = await ask(...asked).result;
  return { text, thinking, finishReason, thoughts: usage.thinkingTokens, ...(stopText && { stopText }), ...(value !== undefined && { value }) };
}

const THOUGHT = ['I wonder', '.\n'];
const ANSWER = ['Yes', ', it is.'];
const PIECES = [...THOUGHT, '</think>', '\n\n', ...ANSWER];
const THOUGHTFUL = { text: 'Yes, it is.', thinking: 'I wonder.', finishReason: 'stop', thoughts: 3 };
const PLAIN = { text: 'I wonder.\n\n\nYes, it is.', thinking: '', finishReason: 'stop', thoughts: 0 };

test('a reply begins inside its thinking where the prompt ends so: by default, or as the caller wants', { timeout: 60_000 }, async () => {
  for (const [template, byDefault] of [...LARGE.map((one) => [one, THOUGHTFUL]), ...SMALL.map((one) => [one, PLAIN])]) {
    const model = await speaking(template, PIECES);
    assert.ok(model.info.thinking);
    assert.deepEqual(await reply(model, {}), byDefault);
    assert.deepEqual(await reply(model, { thinking: true }), THOUGHTFUL);
    assert.deepEqual(await reply(model, { thinking: false }), PLAIN);
    assert.deepEqual(await reply(model, {}), byDefault, 'made again');
    await model.dispose();
  }
});

test('such a reply: its events, limits, stop texts, constraints and continuations', { timeout: 60_000 }, async () => {
  const model = await speaking(LARGE[1], PIECES);
  const events = await collect(ask(model, {}).events);
  assert.deepEqual(events.map(({ type, text }) => [type, text]), [['thinking', 'I wonder'], ['thinking', '.'], ['text', 'Yes'], ['text', ', it is.']]);
  assert.deepEqual(await collect(ask(model, {})), ANSWER);

  assert.deepEqual(await reply(model, { maxTokens: 1 }), { text: '', thinking: 'I wonder', finishReason: 'length', thoughts: 1 });
  assert.deepEqual(await reply(model, { maxTokens: 3 }), { text: '', thinking: 'I wonder.', finishReason: 'length', thoughts: 3 });
  assert.deepEqual(await reply(model, { stop: ['wonder', 'it'] }), { ...THOUGHTFUL, text: 'Yes, ', stopText: 'it' });
  assert.deepEqual(await reply(model, { choices: ['Yes, it is.', 'No.'] }), { ...THOUGHTFUL, value: 'Yes, it is.' });

  const begun = (message) => [{ role: 'user', content: 'Is it?' }, { role: 'assistant', ...message }];
  assert.deepEqual(await reply(model, { continue: true }, begun({ content: '', thinking: 'Hm.\n' })), THOUGHTFUL);
  assert.deepEqual(await reply(model, { continue: true }, begun({ content: 'Well:\n', thinking: 'Hm.' })), PLAIN);
  assert.deepEqual(await reply(model, { continue: true }, begun({ content: 'Well:\n' })), PLAIN);
  await model.dispose();
});

test('a call that is required comes after the thinking', { timeout: 60_000 }, async () => {
  const model = await speaking(LARGE[1], PIECES);
  const tools = [{ name: 'now' }];
  const { toolCalls, thinking, text } = await ask(model, { tools, toolChoice: 'required', parallelToolCalls: false }).result;
  assert.deepEqual([toolCalls.map(({ name, arguments: given }) => [name, given]), thinking, text], [[['now', {}]], 'I wonder.', '']);
  await model.dispose();
});

test('the Prompt API begins with a system message alone, which the template refuses, and says why it refuses others', { timeout: 60_000 }, async () => {
  const model = await speaking(SMALL[1], ANSWER);
  const system = [{ role: 'system', content: 'Be brief.' }];
  const session = await languageModel(model).create({ initialPrompts: system });
  const empty = await model.countTokens([...system, { role: 'user', content: '' }]);
  assert.deepEqual([session.contextUsage, await session.measureContextUsage([{ role: 'assistant', content: 'a' }]) > 0], [empty, true]);
  assert.equal(await session.prompt('Is it?'), 'Yes, it is.');
  const later = await languageModel(model).create();
  await later.append(system);
  assert.equal(later.contextUsage, empty);
  assert.equal(await later.prompt('Is it?'), 'Yes, it is.');
  assert.deepEqual(await model.countTokens(system).catch(({ code, message }) => [code, message]),
    ['use/param', "messages do not suit the model's chat template: No user query found in messages."]);
  await model.dispose();
});

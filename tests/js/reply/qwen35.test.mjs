// SPDX-License-Identifier: MIT
// Conversations of Qwen3.5: its template's prompts and refusals, replies that begin inside their thinking, and its
// calls. tests/fixtures/qwen35 has what jinja2 makes of the published template.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { checkMessages } from '../../../js/page/messages.js';
import { Chat } from '../../../js/reply/chat.js';
import { FORMS, formOf } from '../../../js/reply/calls.js';
import { ReplyText } from '../../../js/reply/text.js';
import { Tools } from '../../../js/reply/tools.js';
import { atOnce } from '../../../js/shared/steps.js';
import { render as renderInSlices } from '../../../js/worker/template.js';
import { rejectsWith, render } from '../support/helper.mjs';

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
    contextSize: 1e6, chatTemplate: () => template, longestToken: () => 8, tokenize: () => [1, 2],
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

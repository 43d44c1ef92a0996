// SPDX-License-Identifier: MIT
// An agent of three tools whose conversation grows turn by turn, as a client of the OpenAI API sends it: the tokens of transformers in every turn.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import { bodyOf, chatRequest } from '../../../js/facades/openai.js';
import { checkMessages } from '../../../js/page/messages.js';
import { checkOptions } from '../../../js/page/options.js';
import { formOf } from '../../../js/reply/calls.js';
import { Chat } from '../../../js/reply/chat.js';
import { Tools } from '../../../js/reply/tools.js';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { modelSpec } from '../../fixtures/make-model.mjs';
import { engineOver } from '../support/engine-host.mjs';
import { render } from '../support/helper.mjs';

const fixture = (name) => readFile(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8');
const { requests, ...templates } = JSON.parse(await fixture('tools/agent.json'));

let engine;
before(async () => {
  engine = await engineOver(writeHeader(modelSpec({ preset: 'qwen3-0.6b', type: 'q8_0' })).header, { inspect: true });
  engine.finish();
});

/** The prompt's ids of a request, as the facade, the page and the worker make them. */
async function idsOf(request, template) {
  const { messages, options } = chatRequest(bodyOf(request));
  const given = checkMessages(messages);
  const own = { tokenize: (...all) => engine.tokenize(...all), facts: engine.facts, chatTemplate: () => template, contextSize: 1e6, longestToken: () => 256 };
  const chat = new Chat(/** @type {any} */ (own), async (text, variables) => render(text, variables));
  return Array.from((await chat.prompt(given, { thinking: true, tools: new Tools(given, checkOptions('chat', { tools: options.tools }), formOf(template, engine.facts)) })).ids);
}

for (const [name, prompts] of Object.entries(templates)) {
  test(`${name}: every turn has the tokens of transformers`, async () => {
    const template = await fixture(`jinja/templates/${name}.jinja`);
    for (const [turn, request] of requests.entries()) {
      const ids = await idsOf(request, template);
      assert.equal(engine.detokenize(ids), engine.detokenize(prompts[turn]), `turn ${turn}`);
      assert.deepEqual(ids, prompts[turn]);
    }
  });
}

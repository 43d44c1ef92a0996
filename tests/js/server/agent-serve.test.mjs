// SPDX-License-Identifier: MIT
// An agent of three tools and eight requests over `quern serve`, with the templates of seven models: each prompt is transformers', letter by letter,
// and what a request has in common with the one before it is not computed again.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from '../../../js/node.js';
import { memberOf, partsOf } from '../../../js/shared/raw-json.js';
import { DEMO } from '../support/helper.mjs';
import { startServer } from '../support/serve-host.mjs';

const WORKER = new URL('../../../dist/worker.node.mjs', import.meta.url);
const CONTEXT = 8192;

const fixture = (path) => readFile(new URL(`../../fixtures/${path}`, import.meta.url), 'utf8');
const agent = await fixture('agents/agent.json');
const expected = Object.values(JSON.parse(await fixture('agents/expected.json')));
const names = [...new Set(expected.map(({ template }) => template))];

const templateOf = (name) => fixture(name === 'qwen3' ? 'vocab/qwen3.chat_template.jinja' : `jinja/templates/${name}.jinja`);

/** The demo model with room for long prompts, and another template beside it. */
async function modelOf(name) {
  const bytes = await readFile(DEMO);
  const key = 'qwen3.context_length';
  bytes.writeUInt32LE(CONTEXT, bytes.indexOf(key) + key.length + 4);
  const files = [new File([bytes], 'demo.gguf'), new File([await templateOf(name)], 'chat_template.jinja')];
  return load(files, { threads: 1, workerUrl: WORKER, contextSize: CONTEXT, store: false });
}

/** The texts of all prompts: each is written as what it keeps of the one before. */
function textsOf(rows) {
  let text = '';
  return rows.map(({ kept: [letters], text: more }) => { text = Array.from(text).slice(0, letters).join('') + more; return text; });
}

for (const name of names) {
  test(`${name}: every turn of an agent`, { timeout: 120_000 }, async () => {
    const model = await modelOf(name);
    const server = await startServer({ model });
    const post = async (path, body) => (await fetch(new URL(path, server.url), { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json();
    for (const thinking of [true, false]) {
      const rows = expected.filter((row) => row.template === name && row.thinking === thinking);
      assert.equal(rows.length, 8);
      const texts = textsOf(rows);
      for (const [turn, { before, kept: [letters] }] of rows.entries()) {
        const messages = partsOf(memberOf(agent, 'messages')).slice(0, before).join();
        const more = `"tools": ${memberOf(agent, 'tools')}, "messages": [${messages}], "chat_template_kwargs": {"enable_thinking": ${thinking}}`;
        const { prompt } = await post('/apply-template', `{${more}}`);
        assert.equal(prompt, texts[turn], `before message ${before}`);
        const { usage } = await post('/v1/chat/completions', `{"model": "demo", "max_tokens": 1, "temperature": 0, ${more}}`);
        const share = letters / Array.from(texts[turn]).length;
        const { cached_tokens: cached } = usage.prompt_tokens_details;
        assert.ok(cached >= 0.9 * share * usage.prompt_tokens, `${cached} of ${usage.prompt_tokens} known, ${share} the same`);
      }
    }
    await server.end();
    await model.dispose();
  });
}

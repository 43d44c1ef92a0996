// SPDX-License-Identifier: MIT
// A model that reads the clock and calculates: its calls run here, and it continues with their results. The demo model
// is too small to know when to call, so toolChoice forces it; with Qwen3-4B leave it out.
//
//   node examples/node-tools.mjs web/models/demo-q8_0.gguf "What time is it?"

import { load } from 'quern';
import { run } from 'quern/run';

const tools = {
  now: {
    description: 'The date and the time',
    parameters: { type: 'object', properties: {} },
    execute: () => new Date().toString(),
  },
  add: {
    description: 'The sum of two numbers',
    parameters: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      required: ['a', 'b'],
    },
    execute: ({ a, b }) => a + b,
  },
};

const [path, question = 'What time is it?'] = process.argv.slice(2);
const model = await load(path);
const reply = run(model, question, { tools, toolChoice: 'required', maxTokens: 200, seed: 1 });
for await (const event of reply.events) {
  if (event.type === 'text') process.stdout.write(event.text);
  if (event.type === 'tool-call') console.log(`[${event.name}(${JSON.stringify(event.arguments)})]`);
  if (event.type === 'tool-result') console.log(`[${event.content}]`);
}
console.log();
await model.dispose();

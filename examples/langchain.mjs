// SPDX-License-Identifier: MIT
// LangChain.js with a model in this program: the requests of its ChatOpenAI never leave the program. Shows a text, a
// stream, an object by a schema, and a call.
//
//   npm install @langchain/openai @langchain/core zod
//   node examples/langchain.mjs [model.gguf]

import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { load } from 'quern';
import { openaiFetch } from 'quern/openai';
import { z } from 'zod';

const model = await load(process.argv[2] ?? 'web/models/demo-q8_0.gguf');
const chat = new ChatOpenAI({
  model: model.info.name,
  apiKey: 'none',
  maxTokens: 100,
  temperature: 0,
  configuration: { fetch: openaiFetch(model) },
});

const { text } = await chat.invoke('What is quern?');
console.log('invoke:', text);

process.stdout.write('stream: ');
for await (const piece of await chat.stream('Who made you?')) process.stdout.write(piece.text);
console.log();

const Answer = z.object({ answer: z.enum(['yes', 'no']), certain: z.boolean() });
const { answer, certain } = await chat.withStructuredOutput(Answer).invoke('Is the sea wet?');
console.log('object:', answer, certain);

// The demo model is too small to know when to call, so tool_choice forces it. With Qwen3-4B leave it out.
const add = tool(({ a, b }) => a + b, {
  name: 'add',
  description: 'The sum of two numbers',
  schema: z.object({ a: z.int().min(0).max(99), b: z.int().min(0).max(99) }),
});
const messages = [new HumanMessage('What is 2 + 3?')];
const asked = await chat.bindTools([add], { tool_choice: 'add' }).invoke(messages);
messages.push(asked);
for (const call of asked.tool_calls) messages.push(await add.invoke(call));
console.log('call:', asked.tool_calls[0].name, asked.tool_calls[0].args, messages.at(-1).text);
console.log('then:', (await chat.invoke(messages)).text);
await model.dispose();

// SPDX-License-Identifier: MIT
// OpenAI's client for JavaScript: chat completions, and responses.
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { CITY, QUESTION, WEATHER, base, tell, tool } from './client.mjs';

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none' });
const asked = { model: 'any', temperature: 0, messages: [{ role: 'user', content: QUESTION }] };

const { choices: [{ message: { content: text } }] } = await client.chat.completions.create(asked);
let streamed = '';
for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) streamed += choices[0]?.delta.content ?? '';

const { choices: [{ message: { tool_calls: [{ function: called }] } }] } = await client.chat.completions.create({ ...asked, tools: [tool], tool_choice: 'required' });
const { choices: [{ message: { parsed: value } }] } = await client.chat.completions.parse({ ...asked, response_format: zodResponseFormat(CITY, 'city') });

const answer = await client.responses.create({ model: 'any', temperature: 0, input: QUESTION });
const next = await client.responses.create({
  model: 'any', temperature: 0, previous_response_id: answer.id, input: 'And of Norway?', tool_choice: 'required',
  tools: [{ type: 'function', strict: true, ...WEATHER }],
});
tell({ text, streamed, call: { name: called.name, arguments: JSON.parse(called.arguments) }, value, more: [answer.output_text], calls: next.output.filter(({ type }) => type === 'function_call') });

// SPDX-License-Identifier: MIT
// OpenAI's Agents SDK for JavaScript, which asks /v1/responses: an agent with a tool, and one whose output has a type.
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { CITY, QUESTION, base, tell } from './client.mjs';

setDefaultOpenAIClient(new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none' }));
setTracingDisabled(true);

const modelSettings = { temperature: 0 };
const { finalOutput: text } = await run(new Agent({ name: 'plain', model: 'any', modelSettings }), QUESTION);

const called = [];
const weather = tool({
  name: 'weather', description: 'Says what the weather is in a city.', parameters: CITY,
  execute: (input) => { called.push(input); return 'Sunny.'; },
});
await run(new Agent({ name: 'caller', model: 'any', tools: [weather], modelSettings: { ...modelSettings, toolChoice: 'required' } }), QUESTION);
const { finalOutput: value } = await run(new Agent({ name: 'typed', model: 'any', outputType: CITY, modelSettings }), QUESTION);
tell({ text, call: { name: 'weather', arguments: called[0] }, value });

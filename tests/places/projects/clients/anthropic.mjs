// SPDX-License-Identifier: MIT
// Anthropic's client for JavaScript.
import Anthropic from '@anthropic-ai/sdk';
import { QUESTION, WEATHER, base, tell } from './client.mjs';

const client = new Anthropic({ baseURL: base, apiKey: 'none' });
const asked = { model: 'any', max_tokens: 200, temperature: 0, messages: [{ role: 'user', content: QUESTION }] };

const textOf = ({ content }) => content.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
const text = textOf(await client.messages.create(asked));
const streamed = textOf(await client.messages.stream(asked).finalMessage());
const { name, description, parameters } = WEATHER;
const { content } = await client.messages.create({ ...asked, tools: [{ name, description, input_schema: parameters }], tool_choice: { type: 'any' } });
const call = content.find(({ type }) => type === 'tool_use');
await client.messages.countTokens({ model: 'any', messages: asked.messages });
tell({ text, streamed, call: { name: call.name, arguments: call.input } });

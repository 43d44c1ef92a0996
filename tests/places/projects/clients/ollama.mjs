// SPDX-License-Identifier: MIT
// Ollama's client for JavaScript.
import { Ollama } from 'ollama';
import { z } from 'zod';
import { CITY, QUESTION, base, tell, tool } from './client.mjs';

const client = new Ollama({ host: base });
const asked = { model: 'any', messages: [{ role: 'user', content: QUESTION }], options: { temperature: 0 }, think: false };

const { message: { content: text } } = await client.chat(asked);
let streamed = '';
for await (const { message } of await client.chat({ ...asked, stream: true })) streamed += message.content;
const { message } = await client.chat({ ...asked, tools: [tool] });      // it has no way to demand a call
const { message: { content } } = await client.chat({ ...asked, format: z.toJSONSchema(CITY) });
const { models: [{ name }] } = await client.list();
const { embeddings } = await client.embed({ model: name, input: ['one', 'two'] });
tell({ text, streamed, value: CITY.parse(JSON.parse(content)), vectors: embeddings.length, tools: typeof message.content });

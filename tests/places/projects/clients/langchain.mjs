// SPDX-License-Identifier: MIT
// LangChain for JavaScript.
import { ChatOpenAI } from '@langchain/openai';
import { CITY, QUESTION, base, tell, tool } from './client.mjs';

const model = new ChatOpenAI({ model: 'any', temperature: 0, apiKey: 'none', configuration: { baseURL: `${base}/v1` } });

const { content: text } = await model.invoke(QUESTION);
let streamed = '';
for await (const { content } of await model.stream(QUESTION)) streamed += content;
const { tool_calls: [{ name, args }] } = await model.bindTools([tool], { tool_choice: 'any', parallel_tool_calls: false }).invoke(QUESTION);
const value = await model.withStructuredOutput(CITY, { method: 'jsonSchema' }).invoke(QUESTION);
tell({ text, streamed, call: { name, arguments: args }, value });

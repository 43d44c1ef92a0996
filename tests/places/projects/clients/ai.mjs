// SPDX-License-Identifier: MIT
// The same program for each of the AI SDK's providers.
import { Output, generateText, streamText, tool } from 'ai';
import { CITY, QUESTION, tell } from './client.mjs';

/** @param {import('ai').LanguageModel} model */
export async function story(model) {
  const asked = { model, temperature: 0, prompt: QUESTION };
  const { text } = await generateText(asked);
  let streamed = '';
  for await (const piece of streamText(asked).textStream) streamed += piece;
  const weather = tool({ description: 'Says what the weather is in a city.', inputSchema: CITY });
  const { toolCalls: [{ toolName: name, input }] } = await generateText({ ...asked, tools: { weather }, toolChoice: 'required' });
  const { output: value } = await generateText({ ...asked, output: Output.object({ schema: CITY }) });
  tell({ text, streamed, call: { name, arguments: input }, value });
}

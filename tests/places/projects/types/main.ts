// SPDX-License-Identifier: MIT
// A stranger's program in TypeScript, which is checked only.
import { QuernError, load, models, support } from 'quern';
import { quern } from 'quern/ai-sdk';
import { openai } from 'quern/openai';
import { languageModel } from 'quern/prompt-api';
import { remote } from 'quern/remote';
import { run } from 'quern/run';
import { fakeModel } from 'quern/testing';
import type { ErrorCode, LoadOptions, Message, Model, Reply, Result, StoredModel } from 'quern';

const options: LoadOptions = { threads: 2, store: false, onProgress: ({ loaded, total }) => console.log(loaded / total) };
const messages: Message[] = [{ role: 'user', content: 'Hi' }];

async function talk(source: string): Promise<Result> {
  const model: Model = await load(source, options);
  const reply: Reply = model.chat(messages, { temperature: 0, signal: new AbortController().signal });
  for await (const event of reply.events) if (event.type === 'text') console.log(event.text);
  const result = await reply.result;
  await model.dispose();
  return result;
}

/** Every other entry, over a model that is none. */
export async function faces(): Promise<unknown[]> {
  const model = fakeModel(['Hi']);
  const reply = run(model, 'What time is it?', { tools: { clock: { description: 'The time', parameters: { type: 'object' }, execute: () => 'noon' } } });
  const completion = await openai(model).chat.completions.create({ messages: [{ role: 'user', content: 'Hi' }], model: 'any' });
  return [await reply.result, completion, quern(model)(), await languageModel(model).create(), await remote('http://127.0.0.1:8080/v1')];
}

export async function main(): Promise<ErrorCode | StoredModel[]> {
  try {
    if (support().ok) console.log((await talk('model.gguf')).usage.cachedTokens);
    return await models.list();
  } catch (error) {
    if (error instanceof QuernError) return error.code;
    throw error;
  }
}

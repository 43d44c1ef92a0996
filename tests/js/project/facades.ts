// SPDX-License-Identifier: MIT
// What the facade of the OpenAI API accepts and must refuse. Without the refusals, the check of its types in
// types.test.mjs would prove nothing.
import type { Model, Reply } from '../../../js/index.d.ts';
import type { RemoteModel } from '../../../js/remote.d.ts';
import { chatCompletion, errorOf, textCompletion } from '../../../js/facades/openai.js';
import { remote } from '../../../js/facades/remote.js';
import type { EmbeddingModelV3, LanguageModelV3, ProviderV3, RerankingModelV3 } from '@ai-sdk/provider';
import type OpenAI from 'openai';
import { quern } from '../../../js/ai-sdk.js';
import { openai, openaiFetch } from '../../../js/openai.js';
import { languageModel } from '../../../js/prompt-api.js';
import { fakeModel } from '../../../js/testing.js';

declare const model: Model;
declare const far: RemoteModel;
const identity = { name: 'x', fingerprint: 'y' };

chatCompletion(model, JSON.parse('{}'), identity).accepted satisfies Promise<void>;
chatCompletion(far, {}, identity).whole() satisfies Promise<object>;
textCompletion(model, {}, identity).chunks() satisfies AsyncIterable<object>;
errorOf(new Error('x')).status satisfies number;
export const made: Promise<Pick<RemoteModel, 'chat' | 'complete' | 'info' | 'dispose'>> = remote('x');
export const reply: Reply = far.chat('x');

const fake: Model = fakeModel(['x', { toolCalls: [{ name: 'a' }] }, new Error('y')]);
const provider: ProviderV3 = quern(fake);
provider.languageModel('x') satisfies LanguageModelV3;
quern(far).embeddingModel() satisfies EmbeddingModelV3;
quern(model, { name: 'x' }).rerankingModel() satisfies RerankingModelV3;

export const session = await languageModel(fake).create({ initialPrompts: [{ role: 'system', content: 'x' }], samplingMode: 'creative', tools: [{ name: 'a', description: 'b', inputSchema: { type: 'object' }, execute: () => 1 }] });
export const said: string = await session.prompt([{ role: 'assistant', content: 'x', prefix: true }], { responseConstraint: /x/ });
export const pieces: ReadableStream<string> = session.promptStreaming('x');
// @ts-expect-error a remote model does not count tokens
languageModel(far);
// @ts-expect-error
session.prompt([{ role: 'tool', content: 'x' }]);

const client = openai(far);
export const asked: OpenAI.ChatCompletionCreateParamsNonStreaming = { model: 'x', messages: [{ role: 'user', content: 'Hi' }] };
export const chatted: Promise<OpenAI.ChatCompletion> = client.chat.completions.create(asked);
export const streamed: Promise<AsyncIterable<OpenAI.ChatCompletionChunk>> = client.chat.completions.create({ messages: [], stream: true, top_k: 1 });
export const completed: Promise<OpenAI.Completion> = openai(model).completions.create({ prompt: 'x' });
export const responded: Promise<{ id: string; output: { type: string }[] }> = client.responses.create({ input: 'x' });
export const events: Promise<AsyncIterable<{ type: string; sequence_number: number }>> = client.responses.create({ input: [], stream: true });
export const embedded: Promise<OpenAI.CreateEmbeddingResponse> = openai(model).embeddings.create({ input: ['x'] });
export const official: ConstructorParameters<typeof OpenAI>[0] = { fetch: openaiFetch(model) };

// @ts-expect-error
fakeModel({ txt: 'x' });
// @ts-expect-error
openai({});
// @ts-expect-error
client.chat.completions.create({ prompt: 'x' });
// @ts-expect-error
export const notStreamed: Promise<OpenAI.ChatCompletion> = client.chat.completions.create({ messages: [], stream: true });
// @ts-expect-error
chatCompletion({}, {}, identity);
// @ts-expect-error
chatCompletion(model, {}, { name: 'x' });
// @ts-expect-error
textCompletion({ complete: model.complete }, {}, identity);
// @ts-expect-error
errorOf(new Error('x')).retry satisfies string;

// SPDX-License-Identifier: MIT
// What index.d.ts allows and refuses: every `@ts-expect-error` line must be an error. Checked by types.test.mjs.

import { z } from 'zod';
import { QuernError, load, models, support, type Store, type ChatOptions, type Message, type Model, type Part, type Reply, type Result } from 'quern';
import { remote, type RemoteModel } from 'quern/remote';
import { run, tool } from 'quern/run';
import 'quern/sw';

const model: Model = await load('model.gguf');
await load(new URL('https://example.org/model.gguf'), { threads: 2, kv: 'f32', quantize: { weights: 'q8', embeddings: 'none' }, onProgress: ({ loaded, total }) => loaded / total });
await load(new File([], 'model.gguf'), { signal: new AbortController().signal, headers: { Authorization: 'x' } });
await load({ repo: 'a/b', file: 'c.gguf', revision: 'main' });
await load([new File([], 'm-00001-of-00001.gguf')]);

const reply: Reply = model.chat('Hi');
for await (const text of reply) text.toUpperCase();
for await (const event of reply.events) {
  if (event.type === 'text' || event.type === 'thinking') event.text satisfies string;
  else if (event.type === 'dropped') event.messages satisfies number;
  else if (event.type === 'prompt') event.logprobs satisfies { id: number; logprob: number | null }[];
  else event.index satisfies number;
  if (event.type === 'tool-call') event.arguments satisfies object;
}
const result: Result = await reply.result;
result.finishReason satisfies 'stop' | 'tool-calls' | 'length' | 'context' | 'aborted';
const answered: Message[] = [
  { role: 'assistant', content: result.text, toolCalls: result.toolCalls }, ...result.toolCalls.map(({ id }): Message => ({ role: 'tool', toolCallId: id, content: 'x' })),
];
const ran = run(model, answered, { tools: { now: { description: 'x', execute: async () => Date.now() } }, maxSteps: 2, temperature: 0 });
for await (const event of ran.events) if (event.type === 'tool-result') event satisfies { content: string, parts?: readonly Part[] };
(await ran.result).messages satisfies Message[];
model.chat('x', { tools: [{ name: 'f' }], toolChoice: { name: 'f' } });
model.chat('x', { tools: [{ name: 'f' }], toolChoice: { names: ['f'], required: true }, parallelToolCalls: false, openObjects: true, json: true });
result.unfinishedCall satisfies { id: string; name: string; text: string } | undefined;
result.usage.thinkingTokens satisfies number;
// @ts-expect-error
model.chat('x', { tools: [{ name: 'f' }], toolChoice: 'sometimes' });
// @ts-expect-error
run(model, 'x', { tools: { now: {} } });
// @ts-expect-error
model.chat('x', { tools: [{ description: 'x' }] });
for await (const event of reply.events) if (event.type === 'text') event.logprobs?.[0].top.map(({ id, text, logprob }) => id + text.length + logprob);
result.usage.cachedTokens satisfies number;
result.dropped satisfies number | undefined;
model.chat('x', { overflow: 'drop', logprobs: 3 });
const person = await model.chat('x', { schema: {
  type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' }, tags: { type: 'array', items: { enum: ['a', 'b'] } }, none: { type: ['null', 'boolean'] } }, required: ['name', 'tags'],
}, maxTokens: 9 }).result;
person.value satisfies { name: string; age?: number; tags: ('a' | 'b')[]; none?: null | boolean } | undefined;
// @ts-expect-error
person.value?.age satisfies string | undefined;
// @ts-expect-error
person.value?.other;
(await model.complete('x', { choices: ['yes', 'no'] }).result).value satisfies 'yes' | 'no' | undefined;
// @ts-expect-error
(await model.complete('x', { choices: ['yes', 'no'] }).result).value satisfies 'yes' | undefined;
// @ts-expect-error
model.chat('x', { schema: true, maxToken: 5 });
model.chat('x', { json: true, whitespace: 'flexible' });
model.chat('x', { regex: /a+/u });
model.chat('x', { grammar: 'root ::= "a"', schema: null });
const zod = await model.chat('x', { schema: z.object({ name: z.string(), when: z.string().transform((text) => new Date(text)), n: z.number().default(1) }) }).result;
zod.value satisfies { name: string; when: Date; n: number } | undefined;
// @ts-expect-error
zod.value satisfies { name: number } | undefined;
zod.issues?.[0]?.message satisfies string | undefined;
model.chat('x', { tools: [{ name: 'a', parameters: z.object({ n: z.int() }) }] });
model.info.sampling.topP satisfies number | undefined;
result.timings.waitMs satisfies number;
model.info.memory.cache.pages satisfies number;
await load('x', { parallel: 8, kvPositions: 8192, snapshots: 8, saveMaxBytes: 2 ** 30 });
model.complete('x', { priority: 'background' });
model.chat('x', { save: 'talk' });
(await model.saved())[0]?.tokens satisfies number | undefined;
await model.forget('talk');
await models.forget(null, { store: true });
(await models.saved()).map(({ name, bytes, date }) => name.length + bytes + date);

const messages: Message[] = [{ role: 'system', content: 'x' }, { role: 'assistant', content: 'x', thinking: 'y' }];
const options: ChatOptions = { maxTokens: 5, thinking: false, stop: ['a'], logitBias: { 5: -Infinity } };
model.chat(messages, options).stop();
model.complete([1, 2, 3], { seed: 1, temperature: null, signal: null });
model.chat('x', null);
(await model.logits(Int32Array.of(1, 2))) satisfies Float32Array;
(await model.tokenize('x')) satisfies number[];
(await model.detokenize([1], { bytes: true })) satisfies Uint8Array[];
(await model.detokenize([1], { bytes: null })) satisfies string;
(await model.countTokens(messages, { thinking: true })) satisfies number;
(await model.profile())?.decode.operations[0].layerMs satisfies readonly number[] | undefined;
support().variant satisfies 'simd' | 'relaxed' | null;
new QuernError('use/param', 'x').code satisfies string;
{ await using disposed = await load('x'); disposed.info.contextSize satisfies number; }

await load('x', { store: '/folder', sha256: ['00'] });
(await models.list()).map(({ id, complete }) => complete && models.remove(id));
(await models.download('x', { signal: new AbortController().signal })).loaded satisfies number;
declare const store: Store;
await load({ repo: 'a', file: 'b' }, { store });

(await model.tokenize(messages, { thinking: true, generationPrompt: false })) satisfies number[];
model.info.endTokens satisfies readonly number[];
model.info.added.before satisfies readonly number[];
model.info.specialTokens.bos_token satisfies string | undefined;
model.info.parallel satisfies number;
model.info.work.rows satisfies number;
const far: RemoteModel = await remote('https://example.org/v1', { apiKey: 'x', model: 'y', silenceMs: 5 });
far.chat(messages, { thinking: true, seed: 1 }) satisfies Reply;
far.complete('x').stop();
far.info.contextSize satisfies number;
/** What works with both. */
const ask = async (one: Pick<Model, 'chat' | 'dispose'>) => (await one.chat('Hi').result).text;
await ask(far);
await ask(model);

declare const shown: { image: HTMLImageElement; canvas: OffscreenCanvas; bitmap: ImageBitmap; video: HTMLVideoElement; data: ImageData };
const seen: Part[] = [
  { type: 'text', text: 'x' }, { type: 'image', image: new Blob(), detail: 'high' }, { type: 'image', image: shown.image, maxPixels: 65_536 },
  { type: 'image', image: shown.canvas }, { type: 'image', image: shown.bitmap }, { type: 'image', image: shown.data },
  { type: 'image', image: { data: new Uint8Array(3), width: 1, height: 1 } }, { type: 'image_url', image_url: { url: 'data:,', detail: 'low' } },
  { type: 'video', video: shown.video, fps: 1 }, { type: 'video', video: { frames: ['a.png', new URL('https://a/b')], fps: 4 }, maxFrames: 8 },
];
model.chat([{ role: 'user', content: seen }], { numberImages: true, onPrefill: ({ phase }) => phase satisfies 'vision' | 'text' });
await load('x', { vision: 'y', visionOptions: { maxPixels: 65_536, mediaCacheBytes: 0, maxImagePixels: 2 ** 24, maxImages: 8, imageMemoryBytes: 2 ** 29 }, sha256: ['00', '11'] });
await load('x/', { vision: false });
(await models.has('x', { vision: 'y' })) satisfies boolean;
(await models.list())[0].vision satisfies string | undefined;
result.usage.imageTokens satisfies number;
model.info.vision?.deepstack satisfies readonly number[] | undefined;
(await model.look('a.png', { detail: 'low' })).values satisfies Float32Array;
(await model.logits([{ role: 'user', content: seen }], { numberImages: true })) satisfies Float32Array;

// Mixed arrays, and destructured events.
for await (const { type, text } of reply.events) text.length + type.length;
for await (const { type, text } of ran.events) (type === 'thinking' ? console.error : console.log)(text);
for await (const event of reply.events) if (event.type === 'tool-call-delta') event.delta satisfies string;
new Response(reply.toReadableStream());

// Read-only properties, and properties that may be undefined (exactOptionalPropertyTypes).
const fixed: readonly Message[] = [{ role: 'assistant', content: 'x', thinking: undefined, toolCalls: undefined, toolCallId: undefined }];
model.chat(fixed, { stop: ['a'] as const, temperature: undefined, signal: undefined, json: undefined, save: undefined, overflow: undefined });
await model.countTokens(fixed, { thinking: undefined });
await model.tokenize(fixed);
await model.logits(fixed);
far.chat(fixed);
run(far, fixed, { tools: { now: { description: undefined, execute: () => 1 } }, maxSteps: undefined, signal: undefined });
await load('x', { contextSize: undefined, signal: undefined, onProgress: undefined, sha256: ['00'] as const, vision: undefined, visionOptions: { maxPixels: undefined }, quantize: { weights: undefined } });
const given: ChatOptions = { maxTokens: undefined, signal: undefined, onPrefill: undefined, tools: undefined };
model.chat('x', given);
await model.embed('x', { instruction: undefined, onProgress: ({ done, total }) => done / total });
await model.rank('x', ['y'], { onProgress: undefined });
await models.download('x', { onProgress: undefined, vision: undefined });
await remote('x', { apiKey: undefined, headers: new Headers() });
new QuernError('use/param', 'x', { cause: undefined, phase: undefined }).toJSON().message satisfies string;

// Types of values: inferred from the call, or unknown, or none.
(await model.chat('x').result).value satisfies undefined;
(await model.chat('x', { temperature: 0, schema: null }).result).value satisfies undefined;
(await model.complete('x', { regex: 'a' }).result).value satisfies undefined;
const anything = (await model.chat('x', { json: true }).result).value;
// @ts-expect-error it may be anything
anything.length;
// @ts-expect-error so may what options elsewhere ask for
(await model.chat('x', given).result).value.length;
// @ts-expect-error there is none
(await model.chat('x').result).value.length;

// Typed arrays have buffers of their own; sources and headers have the types that pages use.
(await model.embed(['x'])).vectors[0] satisfies Float32Array<ArrayBuffer> | undefined;
(await model.logits([1])).buffer satisfies ArrayBuffer;
(await model.detokenize([1], { bytes: true }))[0]?.buffer satisfies ArrayBuffer | undefined;
declare const picked: FileList;
await load(picked, { headers: new Headers({ Authorization: 'x' }) });

// Arguments of a tool's function are inferred from its schema, if the schema is written in the call.
run(model, 'x', { tools: {
  weather: {
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] },
    execute: ({ city, days }) => {
      city satisfies string;
      days satisfies number | undefined;
      return city.length;
    },
  },
  now: { execute: () => 5 },
} });
const coat = tool({
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  // @ts-expect-error it is a string
  execute: ({ city }) => city satisfies number,
});
run(model, 'x', { tools: { coat } });
const parameters: object = {};
run(model, 'x', { tools: { far: { parameters, execute: ({ anything: one }) => one } } });
const apart = { weather: { parameters: { type: 'object', properties: { city: { type: 'string' } } }, execute: async ({ city }: { city: string }) => city } };
run(model, 'x', { tools: apart, maxSteps: 2 });
const asOpenAI: Message[] = [{ role: 'assistant', content: '', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] }, { role: 'tool', tool_call_id: 'a', content: 'x' }];
model.chat(asOpenAI);

// @ts-expect-error an image is no text
model.chat([{ role: 'user', content: [{ type: 'image', text: 'x' }] }]);
// @ts-expect-error no such part
model.chat([{ role: 'user', content: [{ type: 'audio', audio: new Blob() }] }]);
// @ts-expect-error frames alone are no video
model.chat([{ role: 'user', content: [{ type: 'video', video: [new Blob()] }] }]);
// @ts-expect-error unknown option of the vision
await load('x', { visionOptions: { pixels: 5 } });
// @ts-expect-error a remote model takes no ids
far.complete([1, 2]);
// @ts-expect-error nor is it a loaded one
far satisfies Model;
// @ts-expect-error an address, not options
await remote({ url: 'x' });
// @ts-expect-error there is nothing to download into
await models.download('x', { store: false });
// @ts-expect-error a reply is no promise of its text
(await model.chat('x')) satisfies string;
// @ts-expect-error a file needs its repository
await load({ file: 'b' });
// @ts-expect-error unknown option
await load('x', { thread: 2 });
// @ts-expect-error wrong type of an option
model.chat('x', { temperature: '0.7' });
// @ts-expect-error thinking belongs to chats
model.complete('x', { thinking: true });
// @ts-expect-error unknown priority
model.chat('x', { priority: 'high' });
// @ts-expect-error unknown role
model.chat([{ role: 'boss', content: 'x' }]);
// @ts-expect-error content is text
model.chat([{ role: 'user', content: ['x'] }]);
// @ts-expect-error facts are read-only
model.info.threads = 5;
// @ts-expect-error no such code
new QuernError('nope', 'x');
// @ts-expect-error the result is not the reply
reply.text;

// SPDX-License-Identifier: MIT
// A stranger's program: main.js MODEL LIBRARY. A reply and a call by a schema of the library; prints what came of them.
import { load } from 'quern';
import * as schemas from './schemas.js';

const [, , path, library] = process.argv;
const schema = schemas[library];
const model = await load(path, { threads: 2, contextSize: 2048 });
const options = { seed: 1, temperature: 1, maxTokens: 300 };
const { value } = await model.chat('Where to?', { ...options, schema }).result;
const { toolCalls } = await model.chat('Book it.', { ...options, tools: [{ name: 'book', parameters: schema }], toolChoice: 'required' }).result;
console.log(JSON.stringify({ value, call: toolCalls[0]?.arguments }));
await model.dispose();

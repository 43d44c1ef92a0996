// SPDX-License-Identifier: MIT
// main.js FOLDER EXPECTED NAMES TOKENS CONFIGURATIONS: compares one model after the other; prints what was found, a line for each.
import { readFileSync } from 'node:fs';
import { load } from 'quern';
import { compare } from './compare.js';

const [folder, logits, ...given] = process.argv.slice(2);
const [names, tokens, configurations] = given.map((text) => JSON.parse(text));

for (const name of names) {
  const expected = Uint8Array.from(readFileSync(`${logits}/${name}.f16.f32`)).buffer;
  console.log(JSON.stringify({ name, ...await compare(load, { model: `${folder}/${name}.gguf`, expected, tokens, configurations }) }));
}

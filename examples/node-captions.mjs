// SPDX-License-Identifier: MIT
// Captions for a folder of images:
//   node examples/node-captions.mjs model.gguf mmproj.gguf folder
// Needs a Qwen3-VL model and its projector. PNG files need no package; JPEG needs jpeg-js, other formats need sharp.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { QuernError, load } from 'quern';

const IMAGE = /\.(?:png|jpe?g|webp|gif|bmp|avif)$/i;
const QUESTION = { type: 'text', text: 'Write a caption of one line for this image.' };

async function caption(model, path) {
  try {
    const content = [{ type: 'image', image: path, detail: 'low' }, QUESTION];
    const { text } = await model.chat([{ role: 'user', content }], { maxTokens: 40, temperature: 0 }).result;
    return text.trim().replace(/\s+/g, ' ');
  } catch (error) {
    if (!(error instanceof QuernError) || error.code.startsWith('engine/')) throw error;
    return `(${error.message})`;       // an unreadable file fails its own caption only
  }
}

const [source, vision, folder] = process.argv.slice(2);
if (!folder) {
  process.stderr.write('usage: node examples/node-captions.mjs MODEL PROJECTOR FOLDER\n');
  process.exit(1);
}
try {
  const model = await load(source, { vision });
  for (const name of (await readdir(folder)).filter((one) => IMAGE.test(one)).sort()) {
    process.stdout.write(`${name}\t${await caption(model, join(folder, name))}\n`);
  }
  await model.dispose();
} catch (error) {
  if (!(error instanceof QuernError)) throw error;
  process.stderr.write(`${error.message} ${error.hint}\n`);
  process.exitCode = 1;
}

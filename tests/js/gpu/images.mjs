// SPDX-License-Identifier: MIT
// Run by images.test.mjs: images of noise through a model's encoder, and logits behind them, on a device and by the
// processor's scalar kernels. Arguments: how many of the sizes, and folders of tests/fixtures/vision/models.

import { readFile } from 'node:fs/promises';
import { Media } from '../../../js/engine/media.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { random } from '../../fixtures/random.mjs';
import { vlProjector } from '../../fixtures/vl-projector.mjs';
import { differing, logitsOf, open, tell } from './engines.mjs';

/** The second has more than two chunks of patches, and attention over two spans. */
const SIZES = [{ width: 96, height: 64 }, { width: 512, height: 384 }];
const [count, ...names] = process.argv.slice(2);
const LIMITS = { low: 4096, high: 512 * 384 };

async function pairOf(folder) {
  const at = (name) => readFile(`${PROJECT}/tests/fixtures/vision/models/${folder}/${name}`);
  const [model] = folder.split('/');
  return { bytes: await at('model.gguf'), projector: await at('mmproj.gguf').catch(() => vlProjector(model)) };
}

/** What the encoder makes of an image. */
async function lookAt({ engine }, media, id) {
  for (let found; ;) {
    found = media.look(id, 0);
    if (found) return Buffer.from(found.values.buffer);
    await engine.answer();
  }
}

async function results(opened) {
  const media = opened.engine.part(Media);
  const [next, looks, logits] = [random(7), [], []];
  for (const size of SIZES.slice(0, Number(count))) {
    const grid = media.plan('image', size, LIMITS);
    const pixels = Uint8Array.from({ length: 3 * grid.width * grid.height }, () => next() * 256);
    const id = media.add(grid, [pixels]);
    looks.push(await lookAt(opened, media, id));
    const ids = [5, 6, 7, ...Array(grid.rows * grid.cols).fill(media.pad('image')), 8, 9];
    logits.push(await logitsOf(opened.engine, ids, [id]));
    media.release(id);
  }
  return { looks: Buffer.concat(looks), logits: Buffer.concat(logits) };
}

for (const name of names) {
  const { bytes, projector } = await pairOf(name);
  const options = { projector, maxPixels: LIMITS.high };
  const [expected, found] = [false, true].map(async (onDevice) => results(await open(bytes, { onDevice, ...options })));
  const [one, other] = [await expected, await found];
  tell({
    name,
    looks: differing(other.looks, one.looks), rows: one.looks.length / 4,
    logits: differing(other.logits, one.logits), of: one.logits.length / 4,
  });
}
process.exit();

// SPDX-License-Identifier: MIT
// How far a Q8_0 pair that sees is from float arithmetic over its own values, beside llama.cpp's int8 path: MODEL.md's figures for models of other
// seeds. Each model has the golden one's shapes and values in another order, quantised anew; what is exact is this engine over those values as
// F32, which is transformers' within 1e-9 (tests/js/media/vision.test.mjs). All rows of text in the seven conversations that have no video.
//
//   make native dist && node tests/bench/int8-images.mjs [SEED...]      1 to 10; needs cc, and tools/llama.sh where it can be
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from '../../dist/node.js';
import { instantiate } from '../../js/engine/instance.js';
import { pixelsOf } from '../../js/media/pixels-node.js';
import { divergence, floatsOf } from '../fixtures/divergence.mjs';
import { dequantise, readGguf } from '../fixtures/gguf-reader.mjs';
import { writeGguf } from '../fixtures/gguf-writer.mjs';
import { floatToHalf } from '../fixtures/half.mjs';
import { imagesOf } from '../fixtures/images-of.mjs';
import { random } from '../fixtures/random.mjs';
import { LIMITS, Q8, goldenCases, imagePath } from '../fixtures/vision/golden.mjs';
import { vlCases } from '../fixtures/vision-models.mjs';
import { compile, glue } from '../js/support/engine-host.mjs';
import { PROJECT } from './fixtures.mjs';
import { hasNative, nativeCommand } from './native.mjs';

const OUT = join(PROJECT, 'build/bench/int8');
const LLAMA = join(PROJECT, 'build/bench/llama');
const VOCAB = 320;
const PADS = [287, 288];

// --- models ---

/** Blocks of 32: a scale in half precision, and codes. */
function quantise(values) {
  const out = new Uint8Array(values.length / 32 * 34);
  for (let at = 0, to = 0; at < values.length; at += 32, to += 34) {
    const block = values.subarray(at, at + 32);
    const scale = block.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
    new DataView(out.buffer).setUint16(to, floatToHalf(scale), true);
    block.forEach((value, i) => { out[to + 2 + i] = scale ? Math.round(value / scale) : 0; });
  }
  return out;
}

const WRITE = { F32: (values) => new Uint8Array(values.buffer), F16: (values) => new Uint8Array(Uint16Array.from(values, floatToHalf).buffer), Q8_0: quantise };

/** The values in another order. */
function shuffled(values, next) {
  for (let i = values.length - 1; i > 0; i--) {
    const other = Math.floor(next() * (i + 1));
    [values[i], values[other]] = [values[other], values[i]];
  }
  return values;
}

/** A file of the golden pair with its values in another order, and the same as F32. @returns {string[]} their paths */
function twins(source, name, next) {
  const bytes = readFileSync(source);
  const { kvEnd, kvCount, tensors } = readGguf(bytes);
  const made = [...tensors.values()].map(({ name: of, dims, type, data }) => ({ name: of, dims, type, data: WRITE[type](shuffled(dequantise(type, data), next)) }));
  const floats = made.map(({ type, data, ...rest }) => ({ ...rest, type: 'F32', data: WRITE.F32(dequantise(type, data)) }));
  return [made, floats].map((all, i) => {
    const path = join(OUT, `${name}.${i ? 'f32' : 'q8_0'}.gguf`);
    writeFileSync(path, writeGguf({ rawKv: { bytes: bytes.subarray(24, kvEnd), count: kvCount }, tensors: all }));
    return path;
  });
}

function pairs(seed) {
  const next = random(seed);
  const models = twins(Q8.source, `model-${seed}`, next);
  const projectors = twins(Q8.options.vision, `mmproj-${seed}`, next);
  return models.map((model, i) => ({ model, vision: projectors[i] }));
}

// --- logits ---

const CASES = goldenCases('dense').filter(({ messages }) => !JSON.stringify(messages).includes('"video"'));

async function ours({ model: source, vision }) {
  const model = await load(source, { vision, visionOptions: LIMITS, kv: 'f32', threads: 1 });
  const all = [];
  for (const { messages, numberImages } of CASES) all.push(await model.logits(messages, { numberImages }));
  await model.dispose();
  return all;
}

/** Widths, heights and files of a case's images, as the model sees them. */
async function resized({ media }, sizes, images) {
  const args = [];
  for (const name of media) {
    const [height, width] = sizes[name].resized;
    const pixels = await pixelsOf(new Uint8Array(readFileSync(imagePath(name))), { header: (bytes) => images.header(bytes), target: { width, height } });
    const path = join(OUT, `${name}.rgb`);
    writeFileSync(path, images.resize(pixels.data, pixels, { width, height }));
    args.push(String(width), String(height), path);
  }
  return args;
}

function buildTheirs() {
  const libraries = ['mtmd', 'llama', 'ggml', 'ggml-base'].map((name) => join(LLAMA, `lib/lib${name}.so.0`));
  const out = join(LLAMA, 'bin/mtmd_logits');
  execFileSync('cc', ['-O1', `-I${LLAMA}/include`, join(PROJECT, 'tests/bench/mtmd_logits.c'), '-o', out, ...libraries, '-Wl,--allow-shlib-undefined', `-Wl,-rpath-link,${LLAMA}/lib`]);
}

async function theirs({ model, vision }, images) {
  const { cases, media: sizes } = vlCases('dense');
  const all = [];
  for (const { name } of CASES) {
    const one = cases.find((other) => other.name === name);
    const [prompt, out] = ['prompt.txt', 'logits.f32'].map((file) => join(OUT, file));
    writeFileSync(prompt, one.template.replaceAll('<|vision_start|><|image_pad|><|vision_end|>', '<__media__>'));
    const { command, args, cwd } = nativeCommand('mtmd_logits', [model, vision, prompt, out, ...await resized(one, sizes, images)]);
    execFileSync(command, args, { cwd, stdio: 'pipe' });
    all.push(floatsOf(out));
  }
  return all;
}

// --- distances ---

/** The rows of text of all cases, one behind the other. */
const textRows = (all) => Float32Array.from(all.flatMap((logits, i) => CASES[i].ids.flatMap((id, row) => (
  PADS.includes(id) ? [] : Array.from(logits.subarray(row * VOCAB, (row + 1) * VOCAB))))));

async function main() {
  const seeds = process.argv.length > 2 ? process.argv.slice(2).map(Number) : Array.from({ length: 10 }, (_, i) => i + 1);
  const isBeside = hasNative();
  if (isBeside) buildTheirs();
  mkdirSync(OUT, { recursive: true });
  const images = imagesOf(await instantiate(glue[32], await compile('simd'), 1, 32));
  const ratios = [];
  for (const seed of seeds) {
    const [quantised, floats] = pairs(seed);
    const exact = textRows(await ours(floats));
    const own = divergence(exact, textRows(await ours(quantised)));
    const other = isBeside ? divergence(exact, textRows(await theirs(quantised, images))) : NaN;
    ratios.push(own / other);
    console.log(`seed ${seed}: ${exact.length / VOCAB} rows, KL ${own.toExponential(2)}, llama.cpp ${other.toExponential(2)}, ${(own / other).toFixed(2)} times`);
  }
  console.log(`mean ${(ratios.reduce((sum, ratio) => sum + ratio) / ratios.length).toFixed(2)} times`);
}

await main();

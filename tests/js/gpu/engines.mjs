// SPDX-License-Identifier: MIT
// Engines of one model on a device and on the processor, for the programs of this folder.

import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import glue from '../../../build/wasm/node/quern-gpu.mjs';
import glueOfProcessor from '../../../build/wasm/node/quern-simd.mjs';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { Runner } from '../../../js/worker/runner.js';
import { openFor } from '../../../js/worker/gpu-node.js';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';

const compile = async (name) => WebAssembly.compile(await readFile(`${PROJECT}/build/wasm/quern-${name}.wasm`));
const compiled = { gpu: compile('gpu'), simd: compile('simd') };

/** Prints a result for the test. */
export const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

export const goldenBytes = (name) => readFile(`${PROJECT}/${GOLDEN}/${name}.gguf`);

/**
 * Loads a model.
 * @param {Uint8Array | Uint8Array[]} bytes a file, or files
 * @param {{device?: object, onDevice?: boolean, projector?: Uint8Array} & object} [options] device: an open one;
 *   gpu: as load() has it
 */
export async function open(bytes, { onDevice = false, device, projector, gpu, ...options } = {}) {
  device ??= onDevice ? await openFor({ backend: 'webgpu', gpu }, { post() {} }) : null;
  const instance = device
    ? await instantiate(glue, await compiled.gpu, 1, 32, device)
    : await instantiate(glueOfProcessor, await compiled.simd, 1, 32);
  const all = [bytes].flat();
  const [files, visionSize, fileSize] = [all.length, projector?.length, all[0].length];
  const restSize = all.slice(1).reduce((sum, { length }) => sum + length, 0);
  const given = { threads: 1, scalar: !device, memoryLimit: instance.maximum, device, files, fileSize, restSize, visionSize };
  const engine = new Engine(instance, { ...given, ...options });
  for (const [i, file] of all.entries()) {
    if (i > 0) engine.nextFile(file.length);
    engine.feed(file);
  }
  if (projector) {
    engine.vision(visionSize);
    engine.feed(projector);
  }
  engine.finish();
  await engine.settle();
  return { engine, device, runner: new Runner(engine, () => turn()) };
}

/** The bits of the logits of all tokens, computed in chunks of the engine's size. */
export async function logitsOf(engine, ids, media = []) {
  const sequence = engine.sequence();
  sequence.set(Int32Array.from(ids), 'all', media);
  const rows = [];
  while (sequence.pending > 0) {
    engine.step(0);
    if (engine.awaits) await engine.answer();
    rows.push(new Uint32Array(sequence.logits().rows.buffer));
  }
  sequence.free();
  return Buffer.concat(rows.map(({ buffer }) => Buffer.from(buffer)));
}

/** The beginning of a saved conversation's file, which has the fingerprint of the model. */
export async function printOf({ engine, runner }) {
  while (!await runner.turns.run({ scope: 0, guest: 0 }, (ms) => engine.identify(Math.ceil(ms))));
  const sequence = engine.sequence();
  sequence.set(Int32Array.of(3, 4, 5), 'held');
  return Buffer.from(sequence.save('a name')).toString('base64');
}

/** How many 32-bit words of two buffers differ. */
export function differing(a, b) {
  const [one, other] = [a, b].map(({ buffer, byteOffset, length }) => new Uint32Array(buffer, byteOffset, length / 4));
  return one.length === other.length ? one.reduce((sum, word, i) => sum + (word !== other[i]), 0) : Infinity;
}

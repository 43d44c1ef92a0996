// SPDX-License-Identifier: MIT
// Run by radv.test.mjs with a driver for a graphics processor that is not here (radv.c), which writes the instructions
// of each shader to the standard error. Compiles shaders, and writes a line with the name before each: every kernel, for
// every layout, type of keys and values and some sizes of heads; and one that is not guarded.

import { readFile } from 'node:fs/promises';
import { writeSync } from 'node:fs';
import { create, globals } from 'webgpu';
import glue from '../../../build/wasm/node/quern-gpu.mjs';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { KERNELS, wgslOf } from '../../../js/gpu/commands.js';
import { P, begin, main } from '../../../js/gpu/numbers.js';
import { isFloats, layoutsOf } from '../../../js/gpu/panels.js';
import { Pipelines } from '../../../js/gpu/pipelines.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { tell } from './engines.mjs';

Object.assign(globalThis, globals);
globalThis.gpu = create([]);    // the device goes with it
const adapter = await globalThis.gpu.requestAdapter();
const device = await adapter.requestDevice();
const pipelines = new Pipelines(device, { packed: true, fast: false });

/** The layouts of panels, which the engine tells a device when it starts. */
async function layoutsOfEngine() {
  let found = null;
  const played = {
    layouts(words, n, pieces) {
      const { buffer } = this.memory;
      found = layoutsOf(new Int32Array(buffer, words), n, new Int32Array(buffer, pieces));
    },
  };
  const module = await WebAssembly.compile(await readFile(`${PROJECT}/build/wasm/quern-gpu.wasm`));
  const instance = await instantiate(glue, module, 1, 32, played);
  new Engine(instance, { threads: 1, memoryLimit: instance.maximum, device: played });
  return found.map((layout, number) => layout && { layout, number }).filter(Boolean);
}

const TYPES = [0, 1];    // of keys and values: f16, f32
const DIMS = [64, 128];

/** What a kernel's shader is made for, by a name for each. */
function variantsOf(kernel, layouts) {
  const of = (fits) => layouts.filter(({ layout }) => fits(layout)).map(({ layout, number }) => [`layout ${number}`, { layout }]);
  const heads = (types) => DIMS.flatMap((dim) => types.map((type) => [`heads of ${dim}, type ${type}`, { dim, type }]));
  const all = {
    embed: of(() => true), product: of((layout) => !isFloats(layout)), tile: of((layout) => !isFloats(layout)), floats: of(isFloats),
    append: heads(TYPES), attend: heads(TYPES), delta: heads([0]), attend_all: heads([0]),
  };
  return all[kernel] ?? [['', {}]];
}

const UNGUARDED = `${begin()}${main(64)}
  let x = bitcast<f32>(s[${P(1)} + lane]);
  let y = bitcast<f32>(s[${P(2)} + lane]);
  s[lane] = bitcast<u32>(x * y + bitcast<f32>(s[${P(3)} + lane]));
  s[64u + lane] = bitcast<u32>(x / y);
  s[128u + lane] = bitcast<u32>(sqrt(x));
  s[192u + lane] = bitcast<u32>(exp(x));
}`;

/** Shaders with a quotient that is only proposed, and proved by a product (js/gpu/quantize.js). */
const proposing = [];

function compile(name, code) {
  if (code.includes('round(x / scale)')) proposing.push(name);
  writeSync(2, `\n@@@ ${name}\n`);
  pipelines.compile(name, code);
}

device.pushErrorScope('validation');
compile('unguarded', UNGUARDED);
const layouts = await layoutsOfEngine();
for (const [number, kernel] of KERNELS.entries())
  for (const [variant, made] of variantsOf(kernel, layouts))
    compile(`${kernel} ${variant}`.trim(), wgslOf(number, { layout: null, type: 0, dim: 64, packed: true, ...made }));
const invalid = await device.popErrorScope();
tell({ processor: adapter.info.description, architecture: adapter.info.architecture, layouts: layouts.length, invalid: invalid?.message ?? null, proposing });
writeSync(2, '\n@@@\n');
process.exit();

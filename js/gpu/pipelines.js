// SPDX-License-Identifier: MIT
// Pipelines and bind groups of a device, each made at its first use. All shaders have the same bindings: the scratch,
// the table of the step and the params of a command; a matrix or a vector; a layer's pages or states,
// or a second vector.

import { COMMAND, KERNELS, wgslOf } from './commands.js';

const COMPUTE = 4;

/** Kernels whose shader is made for a layout of a matrix, and for a size of heads (with a type of keys and values). */
const OF_LAYOUT = ['embed', 'product', 'tile', 'floats'].map((name) => KERNELS.indexOf(name));
const OF_HEADS = ['append', 'attend', 'delta', 'attend_all'].map((name) => KERNELS.indexOf(name));

export class Pipelines {
  #device;
  #how;                  // what all shaders have in common
  #groups;               // layouts of the bind groups
  #layout;
  #made = new Map();     // a command's key -> pipeline
  #bound = new Map();    // a key -> bind group

  /** Of panels, by number (panels.js). */
  layouts = [];
  /** Whether a pipeline was made since this was set to false: implementations compile at the first use. */
  isFresh = false;

  /** @param {{packed: boolean, fast: boolean}} how of wgslOf() */
  constructor(device, how) {
    this.#device = device;
    this.#how = how;
    const entry = (binding, type, more) => ({ binding, visibility: COMPUTE, buffer: { type, ...more } });
    this.#groups = [
      [entry(0, 'storage'), entry(1, 'read-only-storage'), entry(2, 'uniform', { hasDynamicOffset: true })],
      [entry(0, 'read-only-storage')],
      [entry(0, 'storage')],
    ].map((entries) => device.createBindGroupLayout({ entries }));
    this.#layout = device.createPipelineLayout({ bindGroupLayouts: this.#groups });
  }

  /** The pipeline of the command at a place of `words`. */
  of(words, at) {
    const kernel = words[at + COMMAND.kernel];
    const type = words[at + COMMAND.layout];
    const dim = OF_HEADS.includes(kernel) ? words[at + COMMAND.dim] : 0;
    const key = (kernel * 64 + type) * 2048 + dim;
    let pipeline = this.#made.get(key);
    if (pipeline) return pipeline;
    const layout = OF_LAYOUT.includes(kernel) ? this.layouts[type] : null;
    pipeline = this.compile(KERNELS[kernel], wgslOf(kernel, { layout, type, dim, ...this.#how }));
    this.#made.set(key, pipeline);
    this.isFresh = true;
    return pipeline;
  }

  compile(label, code) {
    const module = this.#device.createShaderModule({ code, label });
    return this.#device.createComputePipeline({
      label,
      layout: this.#layout,
      compute: { module, entryPoint: 'main' },
    });
  }

  /** The bind group number `index` of these resources, which are the same for the same key. */
  group(index, key, resources) {
    let group = this.#bound.get(key);
    if (!group) this.#bound.set(key, (group = this.bind(index, resources)));
    return group;
  }

  bind(index, resources) {
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return this.#device.createBindGroup({ layout: this.#groups[index], entries });
  }

  /** Forgets the bind groups, because a buffer has been replaced. */
  forget() { this.#bound.clear(); }
}

// SPDX-License-Identifier: MIT
// Pipelines and bind groups of a device, each made at its first use. All shaders have the same bindings: the scratch,
// the table of the step and the command; matrices or vectors; a layer's pages or states, or further vectors.

import { COMMAND, KERNELS, wgslOf } from './commands.js';

const COMPUTE = 4;

/** Kernels whose shader is made for a layout of a matrix. */
const OF_LAYOUT = ['embed', 'product', 'tile', 'floats'].map((name) => KERNELS.indexOf(name));

export class Pipelines {
  #device;
  #how;                  // what all shaders have in common
  #group;                // the layout of bind groups
  #layout;
  #made = new Map();     // a command's key -> pipeline
  #bound = new Map();    // what differs between bind groups -> bind group

  /** Of panels, by number (panels.js). */
  layouts = [];
  /** Whether a pipeline was made since this was set to false: implementations compile at the first use. */
  isFresh = false;

  /** @param {{packed: boolean, fast: boolean}} how of wgslOf() */
  constructor(device, how) {
    this.#device = device;
    this.#how = how;
    const entry = (binding, type, more) => ({ binding, visibility: COMPUTE, buffer: { type, ...more } });
    this.#group = device.createBindGroupLayout({
      entries: [
        entry(0, 'storage'), entry(1, 'read-only-storage'), entry(2, 'uniform', { hasDynamicOffset: true }),
        entry(3, 'read-only-storage'), entry(4, 'storage'),
      ],
    });
    this.#layout = device.createPipelineLayout({ bindGroupLayouts: [this.#group] });
  }

  /** The pipeline of the command at a place of `words`. */
  of(words, at) {
    const kernel = words[at + COMMAND.kernel];
    const type = words[at + COMMAND.layout];
    const dim = words[at + COMMAND.dim];
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

  /** The bind group of a key, made at its first use. @param {() => object[]} resources in the order of the bindings */
  bound(key, resources) {
    let group = this.#bound.get(key);
    if (!group) this.#bound.set(key, (group = this.bind(resources())));
    return group;
  }

  bind(resources) {
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return this.#device.createBindGroup({ layout: this.#group, entries });
  }

  /** Forgets the bind groups, because a buffer has been replaced or released. */
  forget() { this.#bound.clear(); }
}

// SPDX-License-Identifier: MIT
// The numbers of WebGPU that quern uses: pages have them as globals, and the package `webgpu` in Node has none.

/** GPUBufferUsage: what a buffer is made for. */
export const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };

/** GPUMapMode.READ. */
export const READ = 1;

// SPDX-License-Identifier: MIT
// Finds out whether a device computes numbers as the processor does. A shader for each family of cases (trial-cases.js)
// computes with the functions of all kernels, on numbers that were chosen so that each fault gives another number: a
// product that is fused with a sum, a folded constant, an approximate quotient, another order, a wrong half, a lost
// carry, a flushed subnormal number. Here the same is computed with JavaScript's numbers. Fast kernels (fastOf in
// numbers.js) may round in any way, so floats are allowed the errors that WGSL allows.

import { COMMAND } from './commands.js';
import { READ, USAGE } from './flags.js';
import { P, begin, fastOf, main } from './numbers.js';
import { Chance, FAMILIES } from './trial-cases.js';

const { MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE } = USAGE;

const PER_NAME = 64;

/** Words that a case is given, and that come of it. */
const GIVEN = 8;
const FOUND = 2;

/** A lane for each case, and a workgroup for each name. */
function shaderOf({ code, cases }) {
  const one = ([name, { code: expression }], i) => `case ${i}u: { found = ${expression}; } // ${name}`;
  return `${begin()}${code}
${main(PER_NAME)}
  let i = wg.x * ${PER_NAME}u + lane;
  let at = ${P(1)} + ${GIVEN}u * i;
  let a = t[at];
  let b = t[at + 1u];
  let x = bitcast<f32>(a);
  let y = bitcast<f32>(b);
  let z = bitcast<f32>(t[at + 2u]);
  let u = bitcast<f32>(t[at + 3u]);
  let d = vec2u(a, b);
  let e = vec2u(t[at + 2u], t[at + 3u]);
  var found = vec2u();
  switch wg.x {
    ${Object.entries(cases).map(one).join('\n    ')}
    default: { }
  }
  s[${FOUND}u * i] = found.x;
  s[${FOUND}u * i + 1u] = found.y;
}`;
}

/** What a device gets wrong of one family. @returns {Promise<string[]>} names of cases */
async function faultsIn(family, fast, change, run) {
  const exact = shaderOf(family);
  const shader = change(fast ? fastOf(exact) : exact);
  if (!shader) return [];
  const names = Object.keys(family.cases);
  const chance = new Chance();
  const table = new Uint32Array(GIVEN * PER_NAME * names.length);
  const expected = names.map((name, n) => Array.from({ length: PER_NAME }, (_, i) => {
    const { given, expected: compute } = family.cases[name];
    const { all, words } = given(chance);
    table.set(words, GIVEN * (PER_NAME * n + i));
    return compute(all);
  }));
  const found = await run(shader, table, names.length, FOUND * PER_NAME * names.length);
  const isRight = ({ isNear }, wanted, got) =>
    wanted.every((word, i) => word === got[i]) || (fast && Boolean(isNear?.(wanted[0], got[0])));
  return names.filter((name, n) => expected[n].some((wanted, i) => {
    const at = FOUND * (PER_NAME * n + i);
    return !isRight(family.cases[name], wanted, found.subarray(at, at + FOUND));
  }));
}

/**
 * What a device gets wrong.
 * @param {{packed: boolean, fast: boolean}} how of wgslOf()
 * @param {(shader: string, table: Uint32Array, groups: number, n: number) => Promise<Uint32Array>} run runs a shader:
 *   `table` is t and w, and s [n] comes back
 * @param {(shader: string) => string | null} [change] for tests: builds a fault into a shader, or leaves it out
 * @returns {Promise<string[]>} names of cases
 */
export async function faultsOf(how, run, change = (shader) => shader) {
  const families = FAMILIES.map((family) => faultsIn(family(how), how.fast, change, run));
  return (await Promise.all(families)).flat();
}

/** Runs shaders on a device, for faultsOf(). @param {GPUDevice} device @param {import('./pipelines.js').Pipelines} pipelines */
export const runnerOf = (device, pipelines) => async (code, table, groups, n) => {
  const newBuffer = (size, usage) => device.createBuffer({ size, usage });
  const command = newBuffer(4 * COMMAND.words, UNIFORM);
  const given = newBuffer(table.byteLength, STORAGE | COPY_DST);
  const scratch = newBuffer(4 * n, STORAGE | COPY_SRC);
  const unused = newBuffer(16, STORAGE);
  const reader = newBuffer(4 * n, MAP_READ | COPY_DST);
  device.queue.writeBuffer(given, 0, table);
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipelines.compile('trial', code));
  pass.setBindGroup(0, pipelines.bind([scratch, given, command, given, unused].map((buffer) => ({ buffer }))), [0]);
  pass.dispatchWorkgroups(groups);
  pass.end();
  encoder.copyBufferToBuffer(scratch, 0, reader, 0, 4 * n);
  device.queue.submit([encoder.finish()]);
  await reader.mapAsync(READ);
  const results = new Uint32Array(reader.getMappedRange().slice(0));
  for (const buffer of [command, given, scratch, unused, reader]) buffer.destroy();
  return results;
};

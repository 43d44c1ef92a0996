// SPDX-License-Identifier: MIT
// AMD's compiler in Mesa (RADV) makes of no kernel a fused product, nor an approximate root or exponential, for graphics
// processors that are not here. It takes reciprocals for quotients of integers, which it corrects with integers, and
// where a kernel itself corrects what an approximate quotient has proposed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, createReadStream, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { PROJECT } from '../../fixtures/golden.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { choose, driverFile } from '../../fixtures/mesa.mjs';
import { withDevice } from './place.mjs';

/** By architecture; Mesa has renamed one. */
const PROCESSORS = some([['vega10'], ['navi31', 'gfx1100'], ['navi21'], ['navi10']], 4);
const FOLDER = join(PROJECT, 'build/vulkan');

/** The driver in front of RADV (radv.c). @returns {object} variables of the environment */
function drive() {
  const found = driverFile('radeon');
  assert.ok(found, 'Mesa has no RADV here: install mesa-vulkan-drivers');
  const { ICD } = JSON.parse(readFileSync(found, 'utf8'));
  const [library, driver] = [join(FOLDER, 'radv.so'), join(FOLDER, 'radv.json')];
  mkdirSync(FOLDER, { recursive: true });
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-o', library, join(PROJECT, 'tests/js/gpu/radv.c'), '-ldl']);
  writeFileSync(driver, JSON.stringify({ file_format_version: '1.0.0', ICD: { library_path: library, api_version: '1.3.0' } }));
  return { QUERN_RADV: ICD.library_path, ...choose(driver), RADV_DEBUG: 'shaders,nocache' };
}

const INEXACT = /^v_(dual_|pk_)?(fma\w*|fmac|mac|mad|madak|madmk|mad_mix\w*|rsq|rsq_clamp|sqrt|exp|log|sin|cos|div_\w+)_(legacy_)?f(16|32|64)/;
const RECIPROCAL = /^v_rcp(_iflag)?_f/;

/** The factor by which RADV multiplies the reciprocal of an integer: 2^32 - 512. */
const OF_INTEGERS = /\bv_(dual_)?mul_f32\w* .*0x4f7ffffe/;

/** Counts the instructions of each shader in what RADV has written. @returns {Promise<Map<string, object>>} */
async function count(log) {
  const shaders = new Map();
  let shader = null;
  for await (const line of createInterface({ input: createReadStream(log) })) {
    if (line.startsWith('@@@ ')) shaders.set(line.slice(4), (shader = { n: 0, inexact: [], reciprocals: 0, ofIntegers: 0 }));
    if (!shader || !/^\t[a-z]\w+.*;/.test(line)) continue;
    const [code] = line.trim().split(';');
    for (const [name] of code.matchAll(/\b[vs]_\w+/g)) {
      if (INEXACT.test(name)) shader.inexact.push(name);
      if (RECIPROCAL.test(name)) shader.reciprocals++;
    }
    shader.n++;
    if (OF_INTEGERS.test(code)) shader.ofIntegers++;
  }
  return shaders;
}

/** @returns {Promise<{told: object, shaders: Map<string, object>}>} */
async function compile([name, ...others], env) {
  const log = join(FOLDER, `radv-${name}.log`);
  const file = openSync(log, 'w');
  try {
    const [told] = await withDevice('radv.mjs', [], { env: { ...env, RADV_FORCE_FAMILY: name }, log: file });
    return { told, shaders: await count(log) };
  } catch (error) {
    const said = readFileSync(log, 'utf8').slice(0, 2000);
    if (others.length && said.includes('Unknown family')) return compile(others, env);
    throw new Error(`${error.message}: ${said}`);
  } finally {
    closeSync(file);
    rmSync(log);
  }
}

for (const names of PROCESSORS)
  test(`shaders for ${names.join(', ')}`, { skip: process.platform !== 'linux' && 'RADV is a driver of Linux' }, async (t) => {
    const { told, shaders } = await compile(names, drive());
    assert.equal(told.invalid, null);
    assert.match(told.processor, /^radv/i);
    const { inexact, reciprocals } = shaders.get('unguarded');
    assert.deepEqual(['fma|mac|mad', 'sqrt|rsq', 'exp'].map((name) => inexact.some((found) => new RegExp(name).test(found))), [true, true, true], inexact.join(' '));
    assert.equal(reciprocals > 0, true);
    shaders.delete('unguarded');
    assert.ok(told.proposing.length > 3 && told.proposing.length < 30, told.proposing.join());
    assert.ok(shaders.size > 3 * told.layouts, `${shaders.size} shaders`);
    for (const [name, { n, inexact: wrong, reciprocals: all, ofIntegers }] of shaders) {
      assert.ok(n > 10, `${name}: ${n} instructions`);
      assert.deepEqual(wrong, [], name);
      assert.equal(all > ofIntegers, told.proposing.includes(name), `${name}: ${all - ofIntegers} reciprocals of floats`);
    }
    t.diagnostic(`${told.processor}, ${told.architecture}: ${shaders.size} shaders, ${[...shaders.values()].reduce((sum, { n }) => sum + n, 0)} instructions`);
  });

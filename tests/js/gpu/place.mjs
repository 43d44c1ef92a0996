// SPDX-License-Identifier: MIT
// Where a device for WebGPU comes from in Node: Chromium brings SwiftShader, a Vulkan driver in software, beside its
// program. QUERN_VULKAN names the file of another driver (lavapipe of Mesa 25, a real one). A driver is chosen by the
// environment, so programs that use a device are processes of their own.

import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, realpathSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROJECT } from '../../fixtures/golden.mjs';
import { howToStart } from '../../web/browser.mjs';

const FOLDERS = () => [dirname(realpathSync(howToStart([]).executablePath)), '/usr/lib/chromium'];

function environment() {
  const own = process.env.QUERN_VULKAN;
  if (own) return { VK_DRIVER_FILES: own };
  const folder = FOLDERS().find((path) => existsSync(join(path, 'vk_swiftshader_icd.json')));
  if (!folder) throw new Error('Chromium has no SwiftShader beside it: set QUERN_VULKAN to the file of a Vulkan driver');
  const loader = join(PROJECT, 'build/vulkan');
  const library = join(loader, 'libvulkan.so.1');
  mkdirSync(loader, { recursive: true });
  if (!existsSync(library)) {    // other processes may have it loaded
    const part = `${library}.${process.pid}`;
    copyFileSync(join(folder, 'libvulkan.so.1'), part);
    renameSync(part, library);
  }
  return { VK_DRIVER_FILES: join(folder, 'vk_swiftshader_icd.json'), LD_LIBRARY_PATH: loader };
}

/**
 * Runs a program of this folder with a device.
 * @param {string} name
 * @param {string[]} given
 * @param {{env?: object, log?: number}} [how] env: variables that choose a driver; log: a file for the standard error, for
 *   drivers that write much: a pipe that is full would lose lines
 * @returns {Promise<any[]>} what it prints, one JSON text in each line
 */
export async function withDevice(name, given = [], { env = environment(), log = 'pipe' } = {}) {
  const program = join(PROJECT, 'tests/js/gpu', name);
  const child = spawn(process.execPath, [program, ...given], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', log] });
  const said = [];
  const found = [];
  child.stderr?.on('data', (bytes) => said.push(bytes));
  for await (const line of createInterface({ input: child.stdout })) found.push(JSON.parse(line));
  const code = child.exitCode ?? (await new Promise((done) => { child.once('exit', done); }));
  if (code !== 0) throw new Error(`${name} ended with ${code ?? child.signalCode}: ${Buffer.concat(said)}`);
  return found;
}

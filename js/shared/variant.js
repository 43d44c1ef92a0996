// SPDX-License-Identifier: MIT
// Chooses the build of the engine that a machine can run. A module with an unknown instruction does not validate, so
// each test is a tiny module with the one instruction in question.

import { QuernError } from './errors.js';
import { HOST } from './host.js';

const PAGE = 2 ** 16;

/**
 * Bytes that 32-bit addresses reach, less the last page (Emscripten's limit), and the limit of browsers for 64-bit
 * addresses.
 */
const MAX_MEMORY = { 32: 2 ** 32 - PAGE, 64: 2 ** 34 };

/** More threads than this compete for memory bandwidth instead of sharing the work. */
const MAX_DEFAULT_THREADS = 8;

/** A module with one function `f` () -> i32 with this body. Sections: type, function, export, code. */
const moduleOf = (...body) => Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  0x01, 5, 1, 0x60, 0, 1, 0x7f,
  0x03, 2, 1, 0,
  0x07, 5, 1, 1, 0x66, 0, 0,
  0x0a, body.length + 4, 1, body.length + 2, 0, ...body, 0x0b,
);

/** i32.const (-64..63), i8x16.splat */
const splat = (n) => [0x41, n & 0x7f, 0xfd, 0x0f];
const FIRST_LANE = [0xfd, 0x1b, 0];     // i32x4.extract_lane 0
const RELAXED_DOT = [0xfd, 0x93, 0x02]; // i32x4.relaxed_dot_i8x16_i7x16_add_s

const simdModule = moduleOf(...splat(0), ...FIRST_LANE);
const relaxedModule = (n) => moduleOf(...splat(-n), ...splat(1), ...splat(0), ...RELAXED_DOT, ...FIRST_LANE);

const validates = (bytes) => typeof WebAssembly === 'object' && WebAssembly.validate(bytes);

/** Whether WebAssembly may be used; a page's policy can forbid it. */
function mayCompile() {
  try {
    return new WebAssembly.Module(simdModule) !== null;
  } catch {
    return false;
  }
}

const hasSimd = () => validates(simdModule);
export const knowsRelaxed = () => validates(relaxedModule(1));

/** Creates a shared memory that can grow; sizes are in pages. @param {32 | 64} address bits of its addresses */
export function newMemory(address, initial, maximum) {
  if (address === 32) return new WebAssembly.Memory({ initial, maximum, shared: true });
  return new WebAssembly.Memory({ initial: BigInt(initial), maximum: BigInt(maximum), shared: true, address: 'i64' });
}

/**
 * Whether memories can be larger than 4 GiB: this needs the final form of 64-bit addresses, of V8 13.3 and Firefox 134.
 * Older versions do not know the property `address`; Node 20 and 22 have it behind a flag, but allow no more memory
 * than 32-bit addresses reach.
 */
export function hasMemory64() {
  try {
    return newMemory(64, 0, 2 ** 16 + 1) !== null;
  } catch {
    return false;
  }
}

let trial = 0;

/**
 * Whether relaxed SIMD exists and works correctly. V8's baseline compiler of 2023 (Node 20) swaps the operands of the
 * dot product, of which one counts as unsigned, so a negative one gives a wrong result. Modules with the same bytes may
 * share code that was compiled under other flags; hence a new number each time.
 */
export function hasRelaxed() {
  if (!knowsRelaxed()) return false;
  trial = (trial % 60) + 1;
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(relaxedModule(trial))).exports.f() === -4 * trial;
  } catch {
    return false;    // the page's policy forbids WebAssembly; loading reports it better
  }
}

export function defaultThreads(hardwareThreads) {
  return Math.max(1, Math.min(MAX_DEFAULT_THREADS, hardwareThreads || 1));
}

/**
 * Chooses the build for a wanted variant, or the best one. The scalar kernels are in the SIMD build.
 * @param {'scalar' | 'simd' | 'relaxed'} [wanted]
 * @param {32 | 64} [address] bits of its addresses, if those are wanted too
 * @returns {{build: 'simd' | 'relaxed', scalar: boolean}}
 */
export function chooseVariant(wanted, address) {
  const refuse = (what) => {
    throw new QuernError('env/simd', `This ${HOST} ${what}.`, { phase: 'start', detail: { wanted } });
  };
  if (!hasSimd()) refuse('is too old: it has no WebAssembly with SIMD');
  if (address === 64 && !hasMemory64()) refuse('has no WebAssembly with 64-bit addresses, as requested');
  if (wanted === 'relaxed' && !hasRelaxed()) refuse('has no relaxed SIMD, which the variant \'relaxed\' needs');
  const build = wanted === 'relaxed' || (!wanted && hasRelaxed()) ? 'relaxed' : 'simd';
  return { build, scalar: wanted === 'scalar' };
}

/** The reason why no worker can be started here; '' if one can. */
export function workerObstacle() {
  if (typeof Worker === 'function') return '';
  const kind = ['Service', 'Shared'].find((name) => `${name}WorkerGlobalScope` in globalThis);
  if (kind) return `A ${kind.toLowerCase()} worker of this browser starts no workers: load the model in a page.`;
  return 'This browser is too old: it has no Web Workers.';
}

/**
 * The reason why only one thread can be used; '' if more can. WebKitGTK has no shared memory for any page by default.
 */
export function threadObstacle(isolated) {
  if (isolated && typeof SharedArrayBuffer === 'function') return '';
  if (isolated) {
    return 'This browser has no SharedArrayBuffer, though the page is cross-origin isolated, so one thread is used.';
  }
  return 'The page is not cross-origin isolated, so one thread is used: its server must send '
    + '"Cross-Origin-Opener-Policy: same-origin" and "Cross-Origin-Embedder-Policy: require-corp".';
}

/** The reason why no model can run here; '' if one can. */
function modelObstacle() {
  if (!hasSimd()) return `This ${HOST} is too old: it has no WebAssembly with SIMD.`;
  return mayCompile() ? '' : 'The page\'s policy (script-src without \'wasm-unsafe-eval\') forbids WebAssembly.';
}

/**
 * Makes the object that support() returns.
 * @param {{isolated: boolean, threads: number, noWorkers?: string}} facts noWorkers: the reason why there are none
 */
export function describeSupport({ isolated, threads, noWorkers = '' }) {
  const webassembly = typeof WebAssembly === 'object';
  const simd = hasSimd();
  const relaxed = hasRelaxed();
  const problem = noWorkers || modelObstacle();
  const obstacle = threadObstacle(isolated);
  return {
    ok: !problem,
    reason: problem || obstacle,
    webassembly, simd, relaxed, isolated,
    threads: !obstacle,
    variant: relaxed ? 'relaxed' : simd ? 'simd' : null,
    defaultThreads: obstacle ? 1 : defaultThreads(threads),
    maxMemory: MAX_MEMORY[hasMemory64() ? 64 : 32],
  };
}

// SPDX-License-Identifier: MIT
// Decoding images beside the engine, in Node: a kind of side workers' jobs (side-kinds.js), and how one is asked for.

import { undecoded } from '../media/limits.js';
import { SideEnd, sideWorkersOf } from './side-workers.js';

/**
 * Milliseconds of work: a hundred megapixels take some seconds. Packages do not look at the time: with the patience
 * there is with such (side-lane.js) these are half a minute.
 */
const MOST_MS = 30_000;
const MOST_OF_PACKAGES_MS = 3000;
const OURS = ['PNG', 'BMP'];

/** Pixels that surely take longer than a moment. */
const SMALL = 2 ** 18;

/** What decodes is loaded with the first image. */
async function decoded({ bytes, found, target }, pace) {
  const { decode } = await import('../media/decode-node.js');
  const slice = (part) => {
    if (pace()) throw new DOMException('The image is given up.', 'AbortError');
    part();
  };
  const { data, ...rest } = await decode(bytes, found, { target, slice });
  return { value: { bytes: data, ...rest } };
}

/** @type {import('./side-worker.js').SideKind} */
export const DECODE = { name: 'decode', open: () => decoded };

/** The signal as what is asked of side workers. */
const jobOf = (signal) => {
  const job = { stopped: signal.aborted, onStop() {} };
  signal.addEventListener('abort', () => { job.onStop(); }, { once: true });
  return job;
};

/**
 * @param {import('./side-lane.js').SideHost} host
 * @param {{owner: import('./turns.js').Owner, signal: AbortSignal}} asker
 * @returns {(job: {bytes: Uint8Array, found: {kind: string, width: number, height: number}, target: object}) =>
 *   Promise<any>}
 */
export const decoderBeside =
  (host, { owner, signal }) =>
  async ({ bytes, found, target }) => {
    const isLong = found.width * found.height > SMALL;
    const how = { owner, job: jobOf(signal), most: OURS.includes(found.kind) ? MOST_MS : MOST_OF_PACKAGES_MS, isLong };
    try {
      const { bytes: data, ...rest } = await sideWorkersOf(host).run(
        DECODE,
        { bytes: bytes.slice(), found, target },
        how,
      );
      return { data, ...rest };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SideEnd)) throw error;
      throw undecoded(`The ${found.kind} file is not decoded: ${error.message}.`, error);
    }
  };

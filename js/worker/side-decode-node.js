// SPDX-License-Identifier: MIT
// Decodes images in side workers, in Node: the kind of their job (side-kinds.js), and the call that requests it.

import { undecoded } from '../media/limits.js';
import { SideEnd, sideWorkersOf } from './side-workers.js';

/**
 * Milliseconds of work. A hundred megapixels take some seconds. Decoders of packages do not look at the time; PATIENCE
 * (side-lane.js) gives them half a minute.
 */
const MOST_MS = 30_000;
const MOST_OF_PACKAGES_MS = 3000;
const OURS = ['PNG', 'BMP'];

/** More pixels than this surely take longer than a moment. */
const SMALL = 2 ** 18;

/** Decodes an image; the decoders are loaded with the first one. */
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

/** Wraps an abort signal as the job that side workers expect. */
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

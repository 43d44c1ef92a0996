// SPDX-License-Identifier: MIT
// A side worker's own part: it does one job after the other, at a pace (side-pace.js), and gives it back where it has
// to give it up.
//
//   engine's worker -> side worker                          side worker -> engine's worker
//   id kind setup payload most words                        ready
//                                                           id value spent held        it is done
//                                                           id payload spent           it has given up: nobody
//                                                                                      waits, or it takes too long
//                                                           id error spent

import { asQuernError, toWire } from '../shared/errors.js';
import { Pace, buffersOf } from './side-pace.js';

/**
 * @typedef {{name: string, open: (setup: any) => (payload: any, pace: () => boolean) => Promise<{value: any, held?:
 *   number}>}} SideKind
 * @param {{listen: (receive: (message: any) => void) => void, post: (message: object, transfer?: any[]) => void}} port
 * @param {SideKind[]} kinds
 */
export function beSideWorker({ listen, post }, kinds) {
  const opened = {};
  /** @returns {Promise<[object, any[]?]>} what is posted, and what of it is handed over */
  const answer = async ({ kind, setup, payload }, pace) => {
    opened[kind] ??= kinds.find(({ name }) => name === kind).open(setup);
    try {
      const { value, held = 0 } = await opened[kind](payload, pace.look);
      return [{ value, held }, ArrayBuffer.isView(value) ? [value.buffer] : buffersOf(value)];
    } catch (error) {
      return pace.isOver ? [{ payload }, buffersOf(payload)] : [{ error: toWire(asQuernError(error, 'call')) }];
    }
  };
  listen(async (job) => {
    const pace = new Pace(job);
    const [outcome, transfer] = await answer(job, pace);
    const worked = pace.worked();
    post({ id: job.id, spent: pace.spent, ...outcome }, transfer);
    pace.pause(worked);
  });
  post({ ready: true });
}

// SPDX-License-Identifier: MIT
// The inner part of a side worker: does one job after another, at a pace (side-pace.js). A job that it gives up goes
// back to the sender.
//
//   engine's worker -> side worker                          side worker -> engine's worker
//   id kind setup payload most words                        ready
//                                                           id value spent held        done
//                                                           id payload spent           given up: it was stopped, or
//                                                                                      takes too long
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
  /** @returns {Promise<[object, any[]?]>} the message, and the buffers to transfer */
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

// SPDX-License-Identifier: MIT
// Loads that take more than one worker, now or later: with a model that drafts, or on a graphics device. A separate
// file of the package, which the first such load fetches.

import { startOnDevice } from './device-load.js';
import { startDrafted } from './draft-load.js';

/** @param {(platform: any, type: string, source: any, options: any) => Promise<{rpc: any, answer: any}>} startWith */
export function startLate(startWith, platform, type, source, options) {
  const start = options.draft === undefined ? startWith : startDrafted.bind(null, startWith);
  return options.backend === 'cpu'
    ? start(platform, type, source, options)
    : startOnDevice(start, platform, type, source, options);
}

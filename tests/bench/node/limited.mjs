// SPDX-License-Identifier: MIT
// What limited.mjs asks of quern in Node.
import { load as open } from '../../../dist/node.js';
import { limited } from '../limited-run.js';

export const { load, first, run } = limited(({ url: _, path, ...options }) => open(path, options));

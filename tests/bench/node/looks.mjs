// SPDX-License-Identifier: MIT
// What looks.mjs asks of quern in Node.
import { join } from 'node:path';
import { load as open } from '../../../dist/node.js';
import { PROJECT } from '../fixtures.mjs';
import { load as begin } from '../looks-run.js';

export { look } from '../looks-run.js';

export const load = ({ model, vision, ...options }) => begin(open, join(PROJECT, model), { vision: join(PROJECT, vision), ...options });

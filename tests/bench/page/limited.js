// SPDX-License-Identifier: MIT
// What limited.mjs asks of a page: the package as everybody has it.
import { load as open } from '../../../dist/index.js';
import { limited } from '../limited-run.js';

export const { load, first, run } = limited(({ url, path: _, ...options }) => open(new URL(url, location.href), { store: false, ...options }));

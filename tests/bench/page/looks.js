// SPDX-License-Identifier: MIT
// What looks.mjs asks of a page: the package as everybody has it.
import { load as open } from '../../../dist/index.js';
import { load as begin } from '../looks-run.js';

export { look } from '../looks-run.js';

const at = (path) => new URL(`/${path}`, location.href);

export const load = ({ model, vision, ...options }) => begin(open, at(model), { vision: at(vision), store: false, ...options });

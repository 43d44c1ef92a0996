// SPDX-License-Identifier: MIT
// What an engine's worker in a browser needs for a model that sees. A file of its own in the package, which comes with
// the first one.

export { pixelsOf, sizeOf } from '../media/pixels-web.js';
export { Sight } from './sight.js';

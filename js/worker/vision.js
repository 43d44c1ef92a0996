// SPDX-License-Identifier: MIT
// The code that an engine's worker in a browser loads for a model with vision. A separate file of the package, which
// the first such model fetches.

export { pixelsOf, sizeOf } from '../media/pixels-web.js';
export { MediaLoader } from './media-loader.js';

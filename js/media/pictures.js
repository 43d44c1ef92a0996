// SPDX-License-Identifier: MIT
// What a page fetches with the first picture or film, its worker too: one file of the package.

export { framesOf } from './film.js';
export { pixelsOf, sizeOf } from './pixels-web.js';

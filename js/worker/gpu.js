// SPDX-License-Identifier: MIT
// What the worker loads first when a graphics device is to compute; bundled apart from it.

import { openWith } from '../gpu/choice.js';

export { without } from '../gpu/choice.js';

/** @param {import('../gpu/choice.js').Wanted} wanted @param {{post: (message: object) => void}} host */
export const openFor = (wanted, host) => openWith(async () => globalThis.navigator.gpu, {}, wanted, host);

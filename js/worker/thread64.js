// SPDX-License-Identifier: MIT
// A thread of the engine with 64-bit addresses: see thread.js.

import glue from './quern-simd64.mjs';

globalThis.name = 'em-pthread';
glue();

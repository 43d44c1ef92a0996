// SPDX-License-Identifier: MIT
// A thread of the engine in a browser, with 32-bit addresses (thread64.js: 64). The glue runs as a thread if the worker
// has this name. The name is set here and not in the worker's options, because bundlers use such an option as the name
// of their chunk.

import glue from './quern-simd.mjs';

globalThis.name = 'em-pthread';
glue();

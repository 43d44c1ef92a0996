// SPDX-License-Identifier: MIT
// A thread of the engine in a browser, whose addresses have 32 bits (thread64.js: 64): the glue, which runs as a thread
// where the worker bears this name. Not given by whoever starts it, since bundlers take the name in a worker's options
// for their chunk's.

import glue from './quern-simd.mjs';

globalThis.name = 'em-pthread';
glue();

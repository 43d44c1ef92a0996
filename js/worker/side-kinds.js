// SPDX-License-Identifier: MIT
// Kinds of jobs of side workers, in browsers and in Node.

import { openCompiler } from '../engine/grammar-compiler.js';

/** @type {import('./side-worker.js').SideKind} */
export const COMPILE = { name: 'compile', open: openCompiler };

// SPDX-License-Identifier: MIT
// Node 20 has relaxed SIMD behind a flag of V8, and its baseline compiler compiles it wrongly (variant.js). Both can be
// corrected by flags before the engine is compiled. Newer versions need neither.

import v8 from 'node:v8';
import { hasRelaxed, knowsRelaxed } from './variant.js';

export function allowRelaxed() {
  if (!knowsRelaxed()) v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  if (knowsRelaxed() && !hasRelaxed()) v8.setFlagsFromString('--no-liftoff');
}

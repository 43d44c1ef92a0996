// SPDX-License-Identifier: MIT

import { hex } from './chunk.js';

const BYTES = 12;

/** A unique name for an answer or a call. */
export const randomId = () => hex(crypto.getRandomValues(new Uint8Array(BYTES)));

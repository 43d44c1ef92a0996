// SPDX-License-Identifier: MIT

import { hex } from './chunk.js';

const BYTES = 12;

/** Letters that name an answer, or a call; nothing else is named so. */
export const randomId = () => hex(crypto.getRandomValues(new Uint8Array(BYTES)));

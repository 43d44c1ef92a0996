// SPDX-License-Identifier: MIT
// The template worker in a page.

import { answer } from './render.js';

globalThis.onmessage = ({ data }) => globalThis.postMessage(answer(data));
globalThis.postMessage({ ready: true });

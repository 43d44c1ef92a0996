// SPDX-License-Identifier: MIT
// The template worker in Node.

import { parentPort } from 'node:worker_threads';
import { answer } from './render.js';

parentPort.on('message', (data) => parentPort.postMessage(answer(data)));
parentPort.postMessage({ ready: true });

// SPDX-License-Identifier: MIT
// A loaded model for as long as a command needs it.

import { downloadProgress } from './cli-models.js';
import { showStatus } from './cli-terminal.js';
import { load } from '../node.js';

/** Runs with a loaded model, which is disposed of in any case. */
export async function withModel(source, options, use) {
  const model = await load(source, { ...options, onProgress: downloadProgress() }).finally(() => showStatus(''));
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

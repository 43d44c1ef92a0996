// SPDX-License-Identifier: MIT
// Loads a model for the time of a command.

import { downloadProgress } from './cli-models.js';
import { showStatus } from './cli-terminal.js';
import { load } from '../node.js';

/** Calls `use` with a loaded model, and disposes of the model in any case. */
export async function withModel(source, options, use) {
  const model = await load(source, { ...options, onProgress: downloadProgress() }).finally(() => showStatus(''));
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

// SPDX-License-Identifier: MIT
// The conversion tool in Node. It is a WebAssembly module of its own, which reads and writes the disk itself. It runs
// in steps, so that progress is shown and an interrupt works in between. No page loads it.

import { availableParallelism } from 'node:os';
import createTool from './node/quern-tool.mjs';
import { QuernError, badParam } from '../shared/errors.js';
import { LOAD } from '../shared/options.js';

const nextTurn = () => new Promise((resolve) => { setImmediate(resolve); });

/** Calls `use` with the addresses of C strings. */
function withStrings(tool, texts, use) {
  const addresses = texts.map((text) => {
    const size = tool.lengthBytesUTF8(text) + 1;
    const address = tool._tool_alloc(size);
    tool.stringToUTF8(text, address, size);
    return address;
  });
  return use(...addresses);
}

async function takeSteps(tool, job, { signal, onProgress }) {
  for (let status = 1; status === 1;) {
    signal?.throwIfAborted();
    status = tool._tool_step(job);
    if (status < 0)
      throw new QuernError(tool.UTF8ToString(tool._tool_code(job)), tool.UTF8ToString(tool._tool_message(job)), {
        phase: 'load',
      });
    onProgress?.(tool._tool_progress(job));
    await nextTurn();
  }
}

/**
 * Writes a model's files as one GGUF file of another weight type. An unfinished file is removed. A file that another
 * process is writing is refused ('storage/busy').
 * @param {string} input a GGUF file, the first of a split one, or a folder with safetensors files
 * @param {string} output
 * @param {{type: string, imatrix?: string, threads?: number, signal?: AbortSignal,
 *   onProgress?: (part: number) => void}} options `imatrix`: the path of a file of importance
 */
export async function quantizeFile(input, output, options) {
  const { type, imatrix = '', threads = availableParallelism(), signal, onProgress } = options;
  if (!Number.isInteger(threads) || threads < 1) throw badParam('--threads', 'must be a whole number from 1 on');
  const nThreads = Math.min(threads, LOAD.threads.most);
  const tool = await createTool({ nThreads: nThreads - 1 });
  const job = withStrings(tool, [input, output, type, imatrix], (...texts) => tool._tool_new(...texts, nThreads));
  try {
    if (job === 0) throw new QuernError('mem/load', 'Not enough memory to convert this model.', { phase: 'load' });
    await takeSteps(tool, job, { signal, onProgress });
  } finally {
    tool._tool_free(job);
    tool.PThread.terminateAllThreads();
  }
}

// SPDX-License-Identifier: MIT
// Finds the file of the engine's worker in Node: beside this file, or, if a bundler has moved this file, in the
// installed package. It ends in .mjs, since the folder that it is copied to may declare that .js files are CommonJS.

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QuernError } from '../shared/errors.js';

/** A file beside the worker. A bundler that treats the worker as an ordinary file does not copy it. */
const ENGINE = 'node/quern-simd.mjs';

const WORKER = 'worker.node.mjs';

/** In a CommonJS bundle `import.meta` has no address. */
const commonJs = () => (typeof __filename === 'string' ? pathToFileURL(__filename).href : undefined);

/** The address is written in the form that bundlers and file tracers recognize. */
const besideThis = () =>
  import.meta.url ? new URL('./worker.node.mjs', import.meta.url) : new URL(WORKER, commonJs());

/**
 * Possible places of the package: below each folder above a program's file.
 * @param {string} file address of that file
 */
function* packagesOf(file) {
  for (let folder = new URL('.', file), last; folder.href !== last; folder = new URL('..', folder)) {
    yield new URL(`node_modules/quern/dist/${WORKER}`, folder);
    last = folder.href;
  }
}

/**
 * Candidates are found from this file as a module and in CommonJS, and from the file with which the program was
 * started. The current folder is not searched: it may be anybody's.
 */
function* candidates() {
  yield besideThis();
  const started = process.argv[1] && pathToFileURL(process.argv[1]).href;
  for (const file of [import.meta.url, commonJs(), started]) if (file?.startsWith('file:')) yield* packagesOf(file);
}

/** @returns {URL} */
export function workerFile() {
  for (const url of candidates())
    if (url.protocol === 'file:' && existsSync(url) && existsSync(new URL(ENGINE, url))) return url;
  throw new QuernError('env/worker', 'The files of the package are not beside this program, nor installed for it.', {
    phase: 'start',
  });
}

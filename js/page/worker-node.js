// SPDX-License-Identifier: MIT
// Where the file of the engine's worker is in Node: beside this file, or, where a bundler has put this one elsewhere,
// in the package as the program has it installed. It ends in .mjs, since the folder that it is copied to may say that
// .js files are CommonJS.

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { QuernError } from '../shared/errors.js';

/** What stands beside the worker; a bundler that takes the worker for a file like others does not copy it. */
const ENGINE = 'node/quern-simd.mjs';

const WORKER = 'worker.node.mjs';

/** In a bundle that is CommonJS `import.meta` has no address. */
const commonJs = () => (typeof __filename === 'string' ? pathToFileURL(__filename).href : undefined);

/** The address stands here as bundlers and those who trace files want it. */
const besideThis = () =>
  import.meta.url ? new URL('./worker.node.mjs', import.meta.url) : new URL(WORKER, commonJs());

/** Where a program finds its packages: below the folders above its file. @param {string} file its address */
function* packagesOf(file) {
  for (let folder = new URL('.', file), last; folder.href !== last; folder = new URL('..', folder)) {
    yield new URL(`node_modules/quern/dist/${WORKER}`, folder);
    last = folder.href;
  }
}

/**
 * This file as a module and in CommonJS, and the file that the program was started with. The folder in which it was
 * started is not asked: that may be anybody's.
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

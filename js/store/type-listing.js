// SPDX-License-Identifier: MIT
// Finds the file of a repository that has a type (typed.js): from the repository's list of files, unless the model is
// stored.

import { hostOf } from '../net/answer.js';
import { openRemote } from '../net/download.js';
import { QuernError } from '../shared/errors.js';
import { idOf } from './identity.js';
import { filesOfType, isModel, storedOfType } from './typed.js';

const MOST_BYTES = 64 << 20;

async function pathsIn({ list }, options) {
  const remote = await openRemote(list, options);
  const parts = [];
  try {
    for await (const { bytes } of remote.chunks()) {
      parts.push(bytes.slice());
      if (parts.length * remote.chunkSize > MOST_BYTES) throw new RangeError('too long');
    }
    return JSON.parse(await new Blob(parts).text()).siblings.map(({ rfilename }) => String(rfilename));
  } catch (cause) {
    if (cause instanceof QuernError) throw cause;
    const message = `The server ${hostOf(list)} does not list the files of the repository; name the file itself.`;
    throw new QuernError('model/format', message, {
      phase: 'load',
      detail: { rule: 'list', host: hostOf(list) },
      cause,
    });
  } finally {
    remote.close();
  }
}

/** @param {{folder: string, type: string, list: string}} source @returns {Promise<{urls: string[], id: string}>} */
export async function listType(source, options) {
  const stored = options.store && (await storedOfType(options.store, source).catch(() => undefined));
  if (stored?.complete && !stored.header.projectors)
    return { id: stored.header.id, urls: stored.header.files.map(({ url }) => url) };
  const paths = await pathsIn(source, options);
  const files = filesOfType(paths, source.type);
  if (files.length === 0) {
    const others = paths.filter(isModel).map((path) => path.slice(-64)).slice(0, 20);
    const message = `The repository has no GGUF file of the type ${source.type}; it has ${others.join(', ') || 'none'}.`;
    throw new QuernError('use/param', message, { phase: 'load', detail: { param: 'source', files: others } });
  }
  const urls = files.map((path) => source.folder + path.split('/').map(encodeURIComponent).join('/'));
  return { id: await idOf(urls[0]), urls };
}

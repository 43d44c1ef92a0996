// SPDX-License-Identifier: MIT
// A fetch that answers from files of this machine as a server would, so that they are stored as a download is: chunk by
// chunk, verified, resumable. Loaded with the first such files.

import { QuernError } from '../shared/errors.js';

const unreadable = (error) =>
  new QuernError('use/param', `The file cannot be read any more (${error?.message ?? error}); choose it again.`, {
    phase: 'load',
    detail: { param: 'options.files' },
    cause: error,
  });

/**
 * @param {string[]} urls addresses of the files
 * @param {Blob[]} files as many
 * @returns {(url: string, options: {headers: {range?: string}}) => Promise<Response>}
 */
export const fetchFrom = (urls, files) => async (url, { headers = {} }) => {
  const file = files[urls.indexOf(String(url))];
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [, 0, ''];
  const [from, to] = [Number(first), Math.min(last === '' ? file.size : Number(last) + 1, file.size)];
  if (from >= to) return new Response(null, { status: 416, headers: { 'Content-Range': `bytes */${file.size}` } });
  await file.slice(from, from + 1).arrayBuffer().catch((error) => { throw unreadable(error); });
  const range = { 'Content-Range': `bytes ${from}-${to - 1}/${file.size}`, 'Content-Length': String(to - from) };
  return new Response(file.slice(from, to), { status: 206, headers: range });
};

// SPDX-License-Identifier: MIT
// Opens a source in the worker, without a store: the bytes of its files in order, never more than a chunk at a time.

import { QuernError } from './errors.js';
import { openRemote } from './download.js';
import { piecesOf } from './stream.js';

export const sum = (sizes) => sizes.reduce((total, size) => total + size, 0);

async function* remoteBytes(remotes) {
  try {
    for (const remote of remotes) for await (const { bytes } of remote.chunks()) yield bytes;
  } finally {
    for (const remote of remotes) remote.close();
  }
}

/** The same chunks, counted as they pass. */
export async function* counting(chunks, onBytes) {
  for await (const chunk of chunks) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/** All files are asked for at first, so that the size of all is known; only the first one's answer is kept waiting. */
async function openUrls(urls, headers, onBytes) {
  const remotes = [];
  try {
    for (const url of urls) {
      remotes.push(await openRemote(url, { headers }));
      remotes.at(-1).onBytes = onBytes;
      if (remotes.length > 1) remotes.at(-1).close();
    }
  } catch (error) {
    for (const remote of remotes) remote.close();
    throw error;
  }
  const sizes = remotes.map(({ size }) => size);
  return { phase: 'download', total: sizes.includes(null) ? 0 : sum(sizes), chunks: remoteBytes(remotes) };
}

/** @param {{stream: ReadableStream, size: number}[]} streams of Blobs */
export async function* streamBytes(streams) {
  for (const { stream } of streams) {
    yield* piecesOf(stream, (error) => new QuernError('use/param', `The file cannot be read any more (${error?.message ?? error}); choose it again.`, {
      phase: 'load', detail: { param: 'source' }, cause: error,
    }));
  }
}

/**
 * @param {{kind: 'urls', urls: string[]} | {kind: 'blobs', blobs: Blob[]}} source
 * @param {(n: number) => void} onBytes called with bytes as they come
 * @returns {Promise<{phase: 'download' | 'load', total: number, chunks: AsyncIterable<Uint8Array>}>} `total` 0: unknown
 */
export async function openSource(source, headers, onBytes) {
  if (source.kind === 'urls') return openUrls(source.urls, headers, onBytes);
  const streams = source.blobs.map((blob) => ({ size: blob.size, get stream() { return blob.stream(); } }));
  return { phase: 'load', total: sum(streams.map(({ size }) => size)), chunks: counting(streamBytes(streams), onBytes) };
}

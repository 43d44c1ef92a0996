// SPDX-License-Identifier: MIT
// Opens what a model comes from and yields its bytes in order, never more than a chunk at a time. Runs in the worker, so
// that the page never holds model bytes. Asking for `bytes=0-` costs no CORS preflight and keeps servers from
// compressing, so that sizes mean bytes of the file.

import { QuernError } from './errors.js';

const PIECE = 1 << 20;   // bytes read at once

const netError = (code, message, detail, cause) => new QuernError(code, message, { phase: 'load', detail, cause });

/** The reason that Node's fetch hides in `cause` (ECONNREFUSED and so on); browsers tell nothing. */
const reasonOf = (error) => error?.cause?.code ?? error?.message ?? String(error);

async function request(url, headers) {
  const { host } = new URL(url);
  try {
    return await fetch(url, { headers: { ...headers, Range: 'bytes=0-' } });
  } catch (error) {
    const offline = globalThis.navigator?.onLine === false;
    throw offline
      ? netError('net/offline', 'This device is offline.', { host }, error)
      : netError('net/unreachable', `${host || 'The address'} could not be reached (${reasonOf(error)}).`, { host }, error);
  }
}

/** Size of the file; 0 where the server does not tell. */
function sizeOf(response) {
  const { headers, status } = response;
  if (status === 206) return Number(/\/(\d+)$/.exec(headers.get('Content-Range') ?? '')?.[1] ?? 0);
  return headers.get('Content-Encoding') ? 0 : Number(headers.get('Content-Length') ?? 0);
}

/**
 * Reads a byte stream piece by piece. Where the stream allows it, all pieces come in one buffer, handed back and
 * forth; otherwise each is a new one, and a large file leaves as much garbage as the collector puts up with.
 */
function readerOf(stream) {
  let reader;
  try {
    reader = stream.getReader({ mode: 'byob' });
  } catch {
    return stream.getReader();
  }
  let buffer = new ArrayBuffer(PIECE);
  return {
    async read() {
      const piece = await reader.read(new Uint8Array(buffer));
      if (piece.value) buffer = piece.value.buffer;
      return piece;
    },
    cancel: () => reader.cancel(),
  };
}

/** The pieces of a stream, each valid until the next is asked for. */
async function* piecesOf(stream) {
  const reader = readerOf(stream);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function* bodyOf(response, total, host) {
  let received = 0;
  const truncated = (why, cause) => netError(
    'net/truncated', `The download from ${host} ended early (${why}), after ${received} of ${total || 'an unknown number of'} bytes.`,
    { host, received, total }, cause,
  );
  const failed = (error) => { throw truncated(reasonOf(error), error); };
  for await (const piece of reporting(piecesOf(response.body), failed)) {
    received += piece.length;
    yield piece;
  }
  if (received < total) throw truncated('the connection was closed');
}

/** The same pieces; what goes wrong in reading them, and only that, goes to `failed`. */
async function* reporting(pieces, failed) {
  try {
    for (;;) {
      const { done, value } = await pieces.next().catch(failed);
      if (done) return;
      yield value;
    }
  } finally {
    await pieces.return();
  }
}

async function openUrl(url, headers) {
  const response = await request(url, headers);
  const { host } = new URL(url);
  if (!response.ok) {
    response.body?.cancel().catch(() => {});
    const { status } = response;
    throw new QuernError('net/http', `${host} answered ${status}${response.statusText && ` (${response.statusText.slice(0, 64)})`}.`, {
      phase: 'load', detail: { host, status }, retryable: status === 429 || status >= 500,
    });
  }
  const range = response.headers.get('Content-Range');
  if (response.status === 206 && range && !range.startsWith('bytes 0-')) {
    throw netError('net/range', `${host} sent another part of the file than the one asked for.`, { host });
  }
  const total = sizeOf(response);
  return { phase: 'download', total, chunks: bodyOf(response, total, host) };
}

function blobChunks(blob) {
  return reporting(piecesOf(blob.stream()), (error) => {
    throw new QuernError('use/param', `The file cannot be read any more (${reasonOf(error)}); choose it again.`, { phase: 'load', detail: { param: 'source' }, cause: error });
  });
}

/**
 * @param {{kind: 'url', url: string} | {kind: 'blob', blob: Blob}} source
 * @returns {Promise<{phase: 'download' | 'load', total: number, chunks: AsyncIterable<Uint8Array>}>}
 */
export async function openSource(source, headers) {
  if (source.kind === 'url') return openUrl(source.url, headers);
  return { phase: 'load', total: source.blob.size, chunks: blobChunks(source.blob) };
}

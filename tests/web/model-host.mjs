// SPDX-License-Identifier: MIT
// A server of models for pages of other origins; it answers range requests.
import { createServer } from 'node:http';

const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Authorization, Range',
  'Access-Control-Expose-Headers': 'Content-Range, ETag, Retry-After',
};

/** Begins an answer with the requested range of a file. @returns {Uint8Array} its bytes, which the caller sends */
export function beginRange({ headers }, response, bytes) {
  const [, first = 0, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
  const [start, end] = [Number(first), last ? Math.min(Number(last) + 1, bytes.length) : bytes.length];
  response.writeHead(206, { ETag: '"1"', 'Content-Range': `bytes ${start}-${end - 1}/${bytes.length}`, 'Content-Length': end - start });
  return bytes.subarray(start, end);
}

/**
 * @param {(request: object, response: object) => Uint8Array | null | undefined} find returns the requested file; null:
 *   it answers itself; undefined: not found
 * @returns {Promise<{url: string, close: () => void}>}
 */
export async function serveModels(find) {
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(CORS)) response.setHeader(name, value);
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    const bytes = find(request, response);
    if (bytes === null) return undefined;
    return bytes ? response.end(beginRange(request, response, bytes)) : response.writeHead(404).end();
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://localhost:${server.address().port}`, close };
}

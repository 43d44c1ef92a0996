// SPDX-License-Identifier: MIT
// Chunks as server-sent events. Comments keep a connection alive while nothing is written; clients skip them. A client that does not read what
// it asked for is let go before that fills the memory.

import { toEvents } from '../facades/sse.js';
import { refusalOf } from './serve-refusal.js';

const HEADERS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' };

/**
 * @param {import('node:http').ServerResponse} response
 * @param {AsyncIterable<object>} chunks
 * @param {{waiting: boolean, pingMs: number, mostUnsent: number}} how waiting: whether nothing has begun yet
 * @returns {Promise<number>} the status: that of a failure, which can only be told as an event now
 */
export async function sendEvents(response, chunks, { waiting, pingMs, mostUnsent }) {
  const { socket } = response.req;      // behind other answers on it, the response has none yet
  const write = (text) => {
    if (socket.destroyed) return;
    response.write(text);
    if (response.writableLength > mostUnsent) socket.destroy();
  };
  let status = 200;
  const refused = (failure) => {
    const { status: failed, error } = refusalOf(failure);
    status = failed;
    return error;
  };
  response.writeHead(status, HEADERS);
  if (waiting) write(': waiting\n\n');
  const pings = setInterval(write, pingMs, ': ping\n\n');
  try {
    for await (const event of toEvents(chunks, refused)) write(event);
    return status;
  } finally {
    clearInterval(pings);
    response.end();
  }
}

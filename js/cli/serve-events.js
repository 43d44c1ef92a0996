// SPDX-License-Identifier: MIT
// Answers in pieces: server-sent events, or lines. Comments keep a connection alive while nothing is written, where clients skip them. A client that
// does not read what it asked for is let go before that fills the memory.

import { toPieces } from '../facades/sse.js';

/** So many pieces of the longest one may wait in any case: a response repeats its request, which may be long, at once in several. */
const LARGE = 4;

/**
 * @param {import('node:http').ServerResponse} response
 * @param {{chunks: () => AsyncIterable<object>}} work
 * @param {{wire: any, waiting: boolean, pingMs: number, mostUnsent: number, worded: (failure: unknown) => {status: number, body: object}}} how
 *   waiting: whether nothing has begun yet
 * @returns {Promise<number>} the status: that of a failure, which can only be told as a piece now
 */
export async function sendPieces(response, work, { wire, waiting, pingMs, mostUnsent, worded }) {
  const { socket } = response.req;      // behind other answers on it, the response has none yet
  const { type, idle } = wire;
  let most = mostUnsent;
  const write = (text) => {
    if (socket.destroyed || !text) return;
    response.write(text);
    most = Math.max(most, LARGE * text.length);
    if (response.writableLength > most) socket.destroy();
  };
  let status = 200;
  const failed = (failure) => {
    const { status: told, body } = worded(failure);
    status = told;
    return body;
  };
  response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' });
  if (waiting) write(idle('waiting'));
  const pings = setInterval(write, pingMs, idle('ping'));
  try {
    for await (const piece of toPieces(work, wire, failed)) write(piece);
    return status;
  } finally {
    clearInterval(pings);
    response.end();
  }
}

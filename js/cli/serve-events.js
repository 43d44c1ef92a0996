// SPDX-License-Identifier: MIT
// Sends answers: a whole answer in pieces of its JSON, and a stream as server-sent events or lines. Comments keep a
// connection alive while nothing is written, if clients of the API skip them. No piece is made before there is room for
// it.

import { toPieces } from '../facades/sse.js';
import { jsonPieces } from './serve-pieces.js';

/**
 * @param {import('node:http').ServerResponse} response
 * @param {{chunks: () => AsyncIterable<object>}} work
 * @param {{wire: any, outbox: any, waiting: boolean, pingMs: number, mostUnsent: number,
 *   worded: (failure: unknown) => {status: number, body: object}}} how waiting: the work has not begun yet
 * @returns {Promise<number>} the status; a failure can only be told in a piece, since the headers are sent
 */
export async function sendPieces(response, work, { wire, outbox, waiting, pingMs, mostUnsent, worded }) {
  const { type, idle } = wire;
  let status = 200;
  const failed = (failure) => {
    const { status: told, body } = worded(failure);
    status = told;
    return body;
  };
  const ping = (text) => { if (outbox.unsent === 0) outbox.write(text); };
  response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' });
  if (waiting) outbox.write(idle('waiting'));
  const pings = setInterval(ping, pingMs, idle('ping'));
  try {
    for await (const piece of toPieces(work, wire, failed)) {
      outbox.write(piece);
      await outbox.room(mostUnsent);
    }
    return status;
  } finally {
    clearInterval(pings);
    response.end();
  }
}

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Sends a whole answer: `json` in pieces, for which `holds` bytes are held until the last one is written, or a `text`.
 * @param {import('node:http').ServerResponse} response
 * @param {{json?: any, text?: string, type?: string, holds?: number}} answer
 * @param {{status: number, headers?: Record<string, string>, outbox: any, mostUnsent: number, turn: <T>(work: () => T)
 *   => Promise<T>}} how turn: runs work of some milliseconds when its turn comes
 */
export async function sendWhole(
  response,
  { json, text, type = JSON_TYPE, holds = 0 },
  { status, headers, outbox, mostUnsent, turn },
) {
  const pieces = jsonPieces(json);
  const isText = text !== undefined;
  outbox.hold(holds);
  const inOne = [{ value: text, done: false }, { value: undefined, done: true }];
  const [first, second] = isText ? inOne : await turn(() => [pieces.next(), pieces.next()]);
  const length = second.done && { 'Content-Length': Buffer.byteLength(first.value) };
  response.writeHead(status, { ...headers, 'Content-Type': type, ...length, 'X-Content-Type-Options': 'nosniff' });
  outbox.write(first.value);
  for (let next = second; !next.done && !outbox.isOver; next = await turn(() => pieces.next())) {
    outbox.write(next.value);
    await outbox.room(mostUnsent);
  }
}

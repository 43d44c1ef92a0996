// SPDX-License-Identifier: MIT
// Server-sent events in the form of the OpenAI API: parses the data of each event, whatever pieces the bytes come in,
// and writes an answer as such events, or as lines.

/** Most letters of an event: a server could send one without an end. */
const MOST = 2 ** 22;

/**
 * @param {AsyncIterable<Uint8Array>} bytes
 * @returns {AsyncGenerator<string>} data of events; comments and other fields are ignored
 */
export async function* eventsOf(bytes) {
  const decoder = new TextDecoder();
  let half = '';        // a line end that may continue
  let begun = [];       // pieces of an incomplete line
  let data = [];
  let [unended, kept] = [0, 0];     // letters of both
  for await (const piece of bytes) {
    const text = half + decoder.decode(piece, { stream: true });
    half = text.endsWith('\r') ? '\r' : '';
    const lines = text.slice(0, text.length - half.length).split(/\r\n|\n|\r/);
    const rest = lines.pop();
    for (const end of lines) {
      const line = begun.join('') + end;
      begun = [];
      unended = 0;
      const [, value] = /^data:? ?(.*)$/s.exec(line) ?? [];
      if (value !== undefined) data.push(value);
      else if (line === '' && data.length) yield data.splice(0).join('\n');
      kept = data.length && kept + line.length + 1;
    }
    begun.push(rest);
    unended += rest.length;
    if (unended + kept > MOST) throw new RangeError('an event without an end');
  }
}

// --- answers in pieces ---

const EVENTS = 'text/event-stream; charset=utf-8';

const asEvent = (value) => `data: ${JSON.stringify(value)}\n\n`;

/**
 * Formats of pieces: the content type, the text of a piece, the end mark, and a text that keeps a waiting connection
 * alive (clients skip it). `failure` is the piece for an error, if the work has none of its own. `openai`: events and
 * an end mark; `data`: events; `named`: events with the type of the piece; `lines`: a line of JSON each.
 */
export const WIRES = {
  openai: { type: EVENTS, piece: asEvent, end: 'data: [DONE]\n\n', idle: (why) => `: ${why}\n\n` },
  data: { type: EVENTS, piece: asEvent, end: '', idle: (why) => `: ${why}\n\n` },
  named: {
    type: EVENTS, piece: (value) => `event: ${value.type}\n${asEvent(value)}`, end: '', idle: (why) => `: ${why}\n\n`,
    failure: (error) => ({ type: 'error', ...error }),
  },
  lines: { type: 'application/x-ndjson', piece: (value) => `${JSON.stringify(value)}\n`, end: '', idle: () => '' },
};

/**
 * Yields an answer as it is sent: its chunks, then its end. By now a failure can only be sent as a piece.
 * @param {{chunks: () => AsyncIterable<object>, failed?: (error: object) => Iterable<object>}} work
 * @param {typeof WIRES.openai} wire
 * @param {(failure: unknown) => object} errorOf describes the failure in the API's form
 * @returns {AsyncGenerator<string>}
 */
export async function* toPieces(work, wire, errorOf) {
  try {
    for await (const chunk of work.chunks()) yield wire.piece(chunk);
    yield wire.end;
  } catch (failure) {
    const error = errorOf(failure);
    for (const piece of work.failed?.(error) ?? [wire.failure?.(error) ?? error]) yield wire.piece(piece);
  }
}

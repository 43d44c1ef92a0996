// SPDX-License-Identifier: MIT
// Server-sent events as servers of the OpenAI API send them: the data of each event, whatever pieces the bytes come in;
// and an answer as such events, or as lines.

/** The longest event that is taken, in letters: a server could send one without an end. */
const MOST = 2 ** 22;

/**
 * @param {AsyncIterable<Uint8Array>} bytes
 * @returns {AsyncGenerator<string>} comments and other fields are left out
 */
export async function* eventsOf(bytes) {
  const decoder = new TextDecoder();
  let half = '';        // a line's end that may go on
  let begun = [];       // pieces of a line without an end
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
 * How pieces are sent: their type, the text of one, what says that there are no more, and what keeps a connection alive
 * that waits (clients skip it); `failure`: the piece that tells an error, where the work has no word for it. `openai`:
 * events, and one more at the end; `data`: events; `named`: events by the type of a piece; `lines`: a line of JSON
 * each.
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
 * An answer as it is sent: its chunks, then its end. A failure can only be told as a piece now.
 * @param {{chunks: () => AsyncIterable<object>, failed?: (error: object) => Iterable<object>}} work
 * @param {typeof WIRES.openai} wire
 * @param {(failure: unknown) => object} errorOf the failure as the API words it
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

// SPDX-License-Identifier: MIT
// Server-sent events as servers of the OpenAI API send them: an answer as events, and the data of each event, whatever pieces the bytes come in.

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

/**
 * An answer as events: its chunks, then its end. A failure can only be told as an event now.
 * @param {AsyncIterable<object>} chunks
 * @param {(failure: unknown) => object} errorOf
 * @returns {AsyncGenerator<string>}
 */
export async function* toEvents(chunks, errorOf) {
  const event = (data) => `data: ${data}\n\n`;
  try {
    for await (const chunk of chunks) yield event(JSON.stringify(chunk));
    yield event('[DONE]');
  } catch (failure) {
    yield event(JSON.stringify({ error: errorOf(failure) }));
  }
}

// SPDX-License-Identifier: MIT
// Server-sent events as servers of the OpenAI API send them: the data of each, whatever pieces the bytes come in.

/** The longest event that is taken, in letters: a server could send one without an end. */
const MOST = 2 ** 22;

/**
 * @param {AsyncIterable<Uint8Array>} bytes
 * @returns {AsyncGenerator<string>} comments and other fields are left out
 */
export async function* eventsOf(bytes) {
  const decoder = new TextDecoder();
  let rest = '';
  let data = [];
  for await (const piece of bytes) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    if (rest.length > MOST) throw new RangeError('an event without an end');
    for (const line of lines) {
      const [, value] = /^data:? ?(.*)$/s.exec(line) ?? [];
      if (value !== undefined) data.push(value);
      else if (line === '' && data.length) yield data.splice(0).join('\n');
    }
  }
}

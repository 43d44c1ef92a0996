// SPDX-License-Identifier: MIT
// Reads the messages of an MCP server out of an answer over HTTP: one JSON text (a message, or several in an array, as
// in revision 2025-03-26) or a stream of events. A server may send anything: its bytes and its messages are counted.
import { say } from '../../shell/words.js';

/** Most bytes and most messages of an answer. */
const MOST_BYTES = 8 * 2 ** 20;
const MOST_MESSAGES = 10_000;

/** The texts of an answer as they arrive. */
async function* textsOf({ body }, host, onBytes) {
  if (!body) return;
  const decoder = new TextDecoder();
  let bytes = 0;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      bytes += value.length;
      if (bytes > MOST_BYTES) throw new Error(say`${host} has sent more than 8 MB.`);
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Collects one event of a stream from its lines. */
class Event {
  data = [];
  id = null;

  take(line) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'data') this.data.push(value);
    if (name === 'id' && !value.includes('\0')) this.id = value;
  }
}

/** The events of a stream. An event that has not ended with the stream does not count. */
async function* eventsOf(response, host, onBytes) {
  let rest = '';      // a line that has not ended; only what is new is searched for its end, since it may be long
  let held = '';      // a CR at the end of a text, which a LF may follow
  let event = new Event();
  for await (const text of textsOf(response, host, onBytes)) {
    const lines = (held + text).split(/\r\n|\n|\r(?!$)/);
    held = lines.at(-1).endsWith('\r') ? '\r' : '';
    const last = held ? lines.pop().slice(0, -1) : lines.pop();
    if (lines.length) lines[0] = rest + lines[0];
    rest = lines.length ? last : rest + last;
    for (const line of lines) {
      if (line) event.take(line);
      else {
        yield event;
        event = new Event();
      }
    }
  }
}

function parsed(text, host) {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : [value];
  } catch {
    throw new Error(say`${host} has answered with something that is no message.`);
  }
}

async function* allOf(response, host, { onId, onBytes }) {
  const type = response.headers.get('Content-Type') ?? '';
  if (/^text\/event-stream\b/i.test(type)) {
    for await (const { id, data } of eventsOf(response, host, onBytes)) {
      if (id) onId(id);
      if (data.length) yield* parsed(data.join('\n'), host);
    }
  } else if (/^application\/json\b/i.test(type)) {
    let text = '';
    for await (const part of textsOf(response, host, onBytes)) text += part;
    yield* parsed(text, host);
  } else {
    await response.body?.cancel();
    throw new Error(say`${host} has answered with a page or a file, so it is no MCP server at this address.`);
  }
}

/**
 * The messages of an answer.
 * @param {Response} response
 * @param {string} host for sentences
 * @param {{onId: (id: string) => void, onBytes: () => void}} events onId: called with the id of an event, from which a
 *   stream can be resumed; onBytes: anything has come, such as a comment that keeps the stream alive
 */
export async function* messagesOf(response, host, events) {
  let count = 0;
  for await (const message of allOf(response, host, events)) {
    if (++count > MOST_MESSAGES) throw new Error(say`${host} has sent more than 10,000 messages.`);
    if (typeof message === 'object' && message !== null) yield message;
  }
}

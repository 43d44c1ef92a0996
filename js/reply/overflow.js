// SPDX-License-Identifier: MIT
// Drops the oldest turns of a conversation that outgrows its context. It drops whole turns, two fifths of a context at
// a time, because each time the model must read the rest again. The result depends on the conversation only, so the
// next reply drops the same turns.

/** Shares of the context: room for the reply, unless maxTokens is less, and the part that is dropped at a time. */
const REPLY = 0.2;
const PART = 0.4;

const isMedium = ({ type }) => type !== 'text';
const mediaIn = (messages) =>
  messages.reduce((sum, { content }) => sum + (typeof content === 'string' ? 0 : content.filter(isMedium).length), 0);

/** The first of `n` places whose prompt is short enough, as those of later places are too; the last one if none is. */
async function firstOf(n, isShort) {
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await isShort(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The prompt of a conversation, or of its end after the system messages. `dropped`: number of messages left out.
 * @param {import('./chat.js').Prompt} whole of all messages
 * @param {{messages: any[], media: any[]}} asked media: those of all messages, in order
 * @param {{contextSize: number, maxTokens?: number}} room
 * @param {(messages: any[], media: any[]) => Promise<import('./chat.js').Prompt>} promptOf
 */
export async function promptThatFits(whole, { messages, media }, { contextSize, maxTokens = Infinity }, promptOf) {
  const excess = whole.ids.length + Math.min(maxTokens, Math.floor(REPLY * contextSize)) - contextSize;
  const first = messages.findIndex(({ role }) => role !== 'system');
  const turns = messages.flatMap(({ role }, i) => (role === 'user' && i > first ? [i] : []));
  if (excess <= 0 || turns.length === 0) return { ...whole, dropped: 0 };
  const part = PART * contextSize;
  const most = whole.ids.length - part * Math.ceil(excess / part);
  const from = (at) =>
    promptOf([...messages.slice(0, first), ...messages.slice(at)], media.slice(mediaIn(messages.slice(0, at))));
  const turn = turns[await firstOf(turns.length, async (i) => (await from(turns[i])).ids.length <= most)];
  return { ...await from(turn), dropped: turn - first };
}

// SPDX-License-Identifier: MIT
// What the model reads of a conversation that outgrows its context: the oldest turns are left out (and dimmed), half a context at once, since
// after each time the model reads everything else anew. From where on it reads is part of the conversation, so a reload changes nothing.

/** Share of the context at which old turns are left out, and the share that is kept then. */
const FULL = 0.8;
const KEPT = 0.5;

/** Letters of a token at least: a conversation with fewer need not be counted. (A byte may be a token; ordinary text has four letters in one.) */
const LEAST_LETTERS = 0.3;

/**
 * @param {import('./talk.js').Talk} talk
 * @param {import('quern').Model} model
 * @param {() => object[]} messages what would be sent now
 */
export async function makeRoom(talk, model, messages) {
  const takes = async (share) => {
    const most = share * model.info.contextSize;
    const letters = messages().reduce((sum, { content }) => sum + (typeof content === 'string' ? content.length : Infinity), 0);
    return letters > most * LEAST_LETTERS && await model.countTokens(messages()) > most;
  };
  const { first } = talk;
  if (first) {
    talk.readFrom('');
    if (await takes(KEPT)) talk.readFrom(first);
  }
  if (!await takes(FULL)) return;
  while (talk.leaveOut() && await takes(KEPT));
}

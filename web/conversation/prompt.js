// SPDX-License-Identifier: MIT
// What the model is sent of a conversation: what its messages say and show. An unanswered or empty turn says nothing to
// it. What the context has no room for the library leaves out, and says so.

/**
 * Of a message with images or videos: those first, as the models were trained. One without vision reads only the words.
 */
function contentOf({ content, media = [] }, sees) {
  if (!media.length) return content;
  if (!sees) return content || '(an image)';
  const text = content ? [{ type: 'text', text: content }] : [];
  return [...media.map(({ type, blob }) => ({ type, [type]: blob })), ...text];
}

/** What a message said before its calls, the calls and their results. */
const stepsOf = ({ steps = [] }) => steps.flatMap(({ content, thinking, calls }) => {
  const done = calls.filter(({ result }) => result !== undefined);
  if (!done.length) return [];
  const toolCalls = done.map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  const results = done.map(({ id, result }) => ({ role: 'tool', toolCallId: id, content: result }));
  return [{ role: 'assistant', content, ...(thinking && { thinking }), toolCalls }, ...results];
});

/** Those that say something; the reply that is being written, if it goes on. */
function turnsOf({ path, run }, goesOn) {
  const { id } = run?.message ?? {};
  return path.filter((turn) => (turn.id === id ? goesOn : turn.content || turn.media));
}

function messagesOf(turn, sees) {
  const { role, thinking } = turn;
  const content = contentOf(turn, sees);
  return [...stepsOf(turn), thinking ? { role, content, thinking } : { role, content }];
}

/**
 * @param {Pick<import('./talk.js').Talk, 'path' | 'run'>} talk
 * @param {{system: string, sees: boolean, goesOn?: boolean, from?: string}} how the system prompt; whether the model
 *   has vision; whether the reply that is being written goes on, and is read as far as it is there; id of the first
 *   turn, where it is not the conversation's
 * @returns {import('quern').Message[]}
 */
export function promptOf(talk, { system, sees, goesOn = false, from = '' }) {
  const turns = turnsOf(talk, goesOn);
  const first = Math.max(0, turns.findIndex(({ id }) => id === from));
  const messages = turns.slice(first).flatMap((turn) => messagesOf(turn, sees));
  return system ? [{ role: 'system', content: system }, ...messages] : messages;
}

/** Id of the first turn that is read where so many messages, the system's aside, are left out. */
export function firstRead(talk, dropped) {
  let left = dropped;
  for (const turn of turnsOf(talk, true)) {
    if (left <= 0) return turn.id;
    left -= messagesOf(turn, false).length;
  }
  return '';
}

// SPDX-License-Identifier: MIT
// What the model is sent of a conversation: from where it reads, what the messages say and show. An unanswered or empty turn says nothing to it.

/** Of a message with pictures or films: those first, as the models were trained. One without eyes reads only the words. */
function contentOf({ content, media = [] }, sees) {
  if (!media.length) return content;
  if (!sees) return content || '(a picture)';
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

/**
 * @param {import('./talk.js').Talk} talk
 * @param {{system: string, sees: boolean, goesOn?: boolean}} how the system prompt; whether the model has eyes; whether the reply that is being
 * written goes on, and is read as far as it is there
 * @returns {import('quern').Message[]}
 */
export function promptOf(talk, { system, sees, goesOn = false }) {
  const { id } = talk.run?.message ?? {};
  const turns = talk.read.filter((turn) => (turn.id === id ? goesOn : turn.content || turn.media));
  const messages = turns.flatMap((turn) => {
    const { role, thinking } = turn;
    const content = contentOf(turn, sees);
    return [...stepsOf(turn), thinking ? { role, content, thinking } : { role, content }];
  });
  return system ? [{ role: 'system', content: system }, ...messages] : messages;
}

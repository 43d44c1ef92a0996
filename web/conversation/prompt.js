// SPDX-License-Identifier: MIT
// Makes the messages that the model gets from a conversation. Unanswered and empty turns are left out. If the context
// is too small, the library drops turns and tells.

/** An attached text, or its passages: the name, and a fence that is longer than any in the text. */
export function fenced({ name, text: whole, passages: text = whole }) {
  const fence = '`'.repeat(text.match(/`{3,}/g)?.reduce((most, { length }) => Math.max(most, length + 1), 3) ?? 3);
  return `${name}\n${fence}\n${text}\n${fence}`;
}

/**
 * The content of a message. Images and videos come first, as the models were trained, and the texts before the
 * question. A model without vision gets the words only.
 */
function contentOf({ content, media = [], texts = [] }, sees) {
  const words = [...texts.map(fenced), content].filter(Boolean).join('\n\n');
  if (!media.length) return words;
  if (!sees) return words || '(an image)';
  const text = words ? [{ type: 'text', text: words }] : [];
  return [...media.map(({ type, blob }) => ({ type, [type]: blob })), ...text];
}

/** The texts before calls, the calls, and their results. */
const stepsOf = ({ steps = [], media = [] }, sees) => steps.flatMap(({ content, thinking, calls }) => {
  const done = calls.filter(({ result }) => result !== undefined);
  if (!done.length) return [];
  const toolCalls = done.map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  const results = done.map(({ id, result }) => {
    const seen = media.filter(({ call }) => call === id);
    return { role: 'tool', toolCallId: id, content: contentOf({ content: result, media: seen }, sees) };
  });
  return [{ role: 'assistant', content, ...(thinking && { thinking }), toolCalls }, ...results];
});

/** The turns with any content. The reply that is being written counts only if it is continued. */
function turnsOf({ path, run }, goesOn) {
  const { id } = run?.message ?? {};
  return path.filter((turn) => (turn.id === id ? goesOn : turn.content || turn.media || turn.texts));
}

function messagesOf(turn, sees) {
  const { role, thinking } = turn;
  const content = role === 'user' ? contentOf(turn, sees) : turn.content;
  return [...stepsOf(turn, sees), thinking ? { role, content, thinking } : { role, content }];
}

/**
 * @param {Pick<import('./talk.js').Talk, 'path' | 'run'>} talk
 * @param {{system: string, sees: boolean, goesOn?: boolean, from?: string}} how system: the system prompt; sees:
 *   whether the model has vision; goesOn: whether the reply that is being written is continued, so that the model reads
 *   its beginning; from: id of the first turn, if it is not the conversation's
 * @returns {import('quern').Message[]}
 */
export function promptOf(talk, { system, sees, goesOn = false, from = '' }) {
  const turns = turnsOf(talk, goesOn);
  const first = Math.max(0, turns.findIndex(({ id }) => id === from));
  const messages = turns.slice(first).flatMap((turn) => messagesOf(turn, sees));
  return system ? [{ role: 'system', content: system }, ...messages] : messages;
}

/** Id of the first turn that is read if this many messages, without the system's, were dropped. */
export function firstRead(talk, dropped) {
  let left = dropped;
  for (const turn of turnsOf(talk, true)) {
    if (left <= 0) return turn.id;
    left -= messagesOf(turn, false).length;
  }
  return '';
}

// SPDX-License-Identifier: MIT
// Where a model with states remembers the state of a conversation (src/engine/slots.h). A state cannot be cut, so a
// prompt with the same beginning continues from one of these places and computes the tokens after it.
//
// A prompt has three. After the system message, with which other conversations begin too. Before the last message of
// the user, which may be edited. And after the header of the reply: there the next prompt begins to differ, since
// thinking is not repeated, and so does a reply that is made again. A tool's result continues from the end of the
// reply, which the engine remembers by itself.

import { MARKS } from './marks.js';

/** The beginning of a user's message that is a tool's result. */
const RESULT = '<tool_response>';

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @returns {(ids: Int32Array) => number[] | undefined} gives the lengths for a prompt's ids, ascending; undefined if
 *   there are no messages
 */
export function placesIn(engine) {
  const { message, reply } = MARKS[engine.facts.marks];
  const tokensOf = (text) => engine.tokenize(text, 'chat');
  const [person, result] = ['', RESULT].map((content) => tokensOf(message('user', `${content}\0`).split('\0')[0]));
  const header = tokensOf(reply);
  return (ids) => {
    const begins = (at, what) => what.every((id, i) => ids[at + i] === id);
    const turns = [];
    for (let at = ids.indexOf(header[0]); at >= 0; at = ids.indexOf(header[0], at + 1)) turns.push(at);
    if (turns.length === 0) return undefined;
    const isAsked = (at) => begins(at, person) && !begins(at, result);
    const all = [
      begins(turns[0], person) ? 0 : turns[1],
      turns.findLast(isAsked),
      Math.min(turns.at(-1) + header.length, ids.length - 1),
    ];
    return [...new Set(all)].filter((at) => at > 0).sort((a, b) => a - b);
  };
}

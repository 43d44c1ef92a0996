// SPDX-License-Identifier: MIT
// Where the state of a conversation is remembered, of models that have one beside the cache (src/engine/slots.h): a
// state cannot be cut, so what begins like a prompt goes on from such a place in it, and computes what stands behind.
//
// There are three in a prompt. Behind what the system says, with which other conversations begin too. Before the last
// thing that a person said, which may be edited. And behind what begins the reply: there the next prompt parts from
// this one, since what was thought is not told again, and so does a reply that is made anew. A tool's result goes on
// from the end of the reply, which the engine remembers by itself.

import { MARKS } from './marks.js';

/** In a person's name: what a tool has returned. */
const RESULT = '<tool_response>';

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @returns {(ids: Int32Array) => number[] | undefined} for a prompt's ids the lengths at which it is, ascending;
 *   undefined: there are no messages
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

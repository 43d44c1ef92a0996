// SPDX-License-Identifier: MIT
// Sets of token ids, a bit for each, as the engine takes them (quern_reply_allow() of src/quern.h) and grammars tell
// them.

/** @param {number} tokens that there are @returns {Uint32Array} none of them */
export const noIds = (tokens) => new Uint32Array(Math.ceil(tokens / 32));

/** All of them. */
export const allIds = (tokens) => noIds(tokens).fill(0xffffffff);

export const hasId = (bits, id) => ((bits[id >>> 5] >>> (id & 31)) & 1) === 1;
export const addId = (bits, id) => { bits[id >>> 5] |= 1 << (id & 31); };
export const removeId = (bits, id) => { bits[id >>> 5] &= ~(1 << (id & 31)); };

// SPDX-License-Identifier: MIT
// Sets of token ids, one bit each: the form that the engine takes (quern_reply_allow() of src/quern.h) and that
// grammars return.

/** @param {number} tokens size of the vocabulary @returns {Uint32Array} the empty set */
export const noIds = (tokens) => new Uint32Array(Math.ceil(tokens / 32));

/** The set of all ids. */
export const allIds = (tokens) => noIds(tokens).fill(0xffffffff);

export const hasId = (bits, id) => ((bits[id >>> 5] >>> (id & 31)) & 1) === 1;
export const addId = (bits, id) => { bits[id >>> 5] |= 1 << (id & 31); };
export const removeId = (bits, id) => { bits[id >>> 5] &= ~(1 << (id & 31)); };

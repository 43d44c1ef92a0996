// SPDX-License-Identifier: MIT
// A conversation as a tree: each message follows its parent, an edited question and a reply written again stand beside
// the old ones, and what is shown is the way from the beginning to one leaf. Ids sort by the time they were made.
// Nothing here is stored.

let last = 0;

/** An id that is larger than all this page has made, and that no other tab makes. */
export function newId() {
  last = Math.max(last + 1, Date.now());
  return last.toString(36).padStart(9, '0') + Math.random().toString(36).slice(2, 8).padEnd(6, '0');
}

/** @returns {object[]} the messages from the first one to `leaf` */
export function pathTo(messages, leaf) {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const path = [];
  for (let at = byId.get(leaf); at && path.length < messages.length; at = byId.get(at.parent)) path.push(at);
  return path.reverse();
}

/** @returns {Map<string, object[]>} the messages by the id of the one that they follow, oldest first */
export function familiesOf(messages) {
  const families = new Map();
  for (const message of messages) {
    const family = families.get(message.parent);
    if (family) family.push(message);
    else families.set(message.parent, [message]);
  }
  for (const family of families.values()) family.sort((a, b) => (a.id < b.id ? -1 : 1));
  return families;
}

/** The leaf below a message that was written last. */
export function newestBelow(messages, id) {
  const newestChild = new Map();
  for (const message of messages) {
    if (!(newestChild.get(message.parent) > message.id)) newestChild.set(message.parent, message.id);
  }
  let at = id;
  for (let i = 0; newestChild.has(at) && i < messages.length; i++) at = newestChild.get(at);
  return at;
}

/** @returns {string} the leaf that was written last, '' of nothing */
export const newestLeaf = (messages) => (messages.length ? messages.reduce((a, b) => (a.id > b.id ? a : b)).id : '');

// SPDX-License-Identifier: MIT
// A conversation as a tree. Each message follows its parent; an edited question or a repeated reply is a sibling of the
// old one. The path from the beginning to one leaf is shown. Ids sort by their time. Nothing here is stored.

let last = 0;

/** Makes an id that is larger than all earlier ids of this page, and unique among tabs. */
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

/** @returns {Map<string, object[]>} messages by the id of their parent, oldest first */
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

/** The newest leaf below a message. */
export function newestBelow(messages, id) {
  const newestChild = new Map();
  for (const message of messages) {
    if (!(newestChild.get(message.parent) > message.id)) newestChild.set(message.parent, message.id);
  }
  let at = id;
  for (let i = 0; newestChild.has(at) && i < messages.length; i++) at = newestChild.get(at);
  return at;
}

/** @returns {Set<object>} a message and all that follow it, on every branch */
export function allBelow(messages, from) {
  const families = familiesOf(messages);
  const found = new Set(messages.filter(({ id }) => id === from));
  for (const { id } of found) for (const child of families.get(id) ?? []) found.add(child);
  return found;
}

/** @returns {string} the newest leaf; '' if there are no messages */
export const newestLeaf = (messages) => (messages.length ? messages.reduce((a, b) => (a.id > b.id ? a : b)).id : '');

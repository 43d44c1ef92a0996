// SPDX-License-Identifier: MIT
// Makes messages of this page from the messages of another program's conversation, which name their parents. Messages
// that are not kept (hidden ones, results of tools) are passed over, and replies that follow each other become one, as
// a model writes them around its calls. Branches stay. Nothing recurses: a conversation may be one long chain.

/** Most messages of a conversation. */
const MOST = 50_000;

/** The last moment, in ms, that an id can represent: nine digits to the base of 36. */
const LATEST = 36 ** 9 - 1;

/** Nodes in an order in which each follows its parent, those without an id left out; null if some are in a circle. */
function inOrder(nodes) {
  const byId = new Map(nodes.filter(({ id }) => id).map((node) => [node.id, node]));
  const children = new Map([[null, []]]);
  for (const node of byId.values()) {
    const parent = byId.has(node.parent) ? node.parent : null;
    if (children.has(parent)) children.get(parent).push(node);
    else children.set(parent, [node]);
  }
  const order = children.get(null);
  for (let at = 0; at < order.length; at++) for (const child of children.get(order[at].id) ?? []) order.push(child);
  return order.length === byId.size ? order : null;
}

const hasAny = ({ role, content, thinking, media, texts }) =>
  Boolean(role && (content.trim() || thinking || media?.length || texts?.length));

const joined = (a, b) => [a, b].filter(Boolean).join('\n\n');

/** The message of a node. Its id sorts by the time, and behind that of its parent. */
function messageOf({ id: _, parent: __, time, ...node }, above, index) {
  const from = Number.isFinite(time) && time > 0 ? Math.min(time, LATEST) : 0;
  const at = Math.max(Math.floor(from), above?.at ?? 0);
  const id = at.toString(36).padStart(9, '0') + index.toString(36).padStart(6, '0');
  return { at, message: { ...node, id, parent: above?.message.id ?? '' } };
}

/**
 * @param {object[]} nodes {id, parent, role, content, time} and other fields of a message; role '': not kept
 * @param {string} leaf id of the last node that is shown
 * @param {number} created ms, for nodes without a time
 * @returns {?{messages: object[], leaf: string}} null if the nodes are no tree, or too many
 */
export function messagesOf(nodes, leaf, created) {
  const order = nodes.length > MOST ? null : inOrder(nodes);
  if (!order) return null;
  const above = new Map();      // id of a node -> the node above it that is kept
  const kept = new Map();       // id of a node -> it, or the node above it that is kept
  const followers = new Map();  // node -> number of kept nodes that follow
  for (const node of order) {
    const parent = kept.get(node.parent);
    const isKept = hasAny(node);
    above.set(node.id, parent);
    kept.set(node.id, isKept ? node : parent);
    if (isKept) followers.set(parent, (followers.get(parent) ?? 0) + 1);
  }
  const made = new Map();       // node -> {message, at}
  for (const [index, node] of order.entries()) {
    if (kept.get(node.id) !== node) continue;
    const parent = above.get(node.id);
    const before = made.get(parent);
    const goesOn = node.role === 'assistant' && parent?.role === 'assistant' && followers.get(parent) === 1;
    if (goesOn) {
      const { message } = before;
      message.content = joined(message.content, node.content);
      message.thinking = joined(message.thinking, node.thinking);
      message.model ||= node.model;
      made.set(node, before);
    } else made.set(node, messageOf({ ...node, time: node.time || created }, before, index));
  }
  const messages = [...new Set([...made.values()].map(({ message }) => message))];
  return { messages, leaf: made.get(kept.get(leaf))?.message.id ?? '' };
}

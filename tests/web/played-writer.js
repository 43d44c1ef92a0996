// SPDX-License-Identifier: MIT
// The worker of played-model.js: every few milliseconds it sends one message with a piece of each running reply, as an
// engine that batches does.

const STEP_MS = 8;

/** A reply's text: easy to read, with some markup to show. */
const PIECES = ['\n\n## A section\n\nIt', ...' is about the quick brown fox that jumps over the lazy dog and back again'.split(/(?= )/), '.\n\n- one', ' item', ' more',
  '\n- **two**', ' `items`', '\n\n| a | b |\n| --- | --- |\n', '| 1 |', ' 2 |\n', '| 3 |', ' 4 |\n', '\n```js\nfor (const x of all) {', '\n  use(x', ', 1);', '\n}\n```\n'];

const at = new Map();       // id -> number of pieces so far

addEventListener('message', ({ data: { id, from } }) => {
  if (from === undefined) at.delete(id);
  else at.set(id, from);
});

setInterval(() => {
  if (!at.size) return;
  postMessage([...at].map(([id, n]) => {
    at.set(id, n + 1);
    return [id, PIECES[n % PIECES.length]];
  }));
}, STEP_MS);

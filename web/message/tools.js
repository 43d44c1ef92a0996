// SPDX-License-Identifier: MIT
// Loads the code for tools (the room `tools`) with the first call, or with the first question that has tools.

import { thumbInMessage } from './media.js';

/** @returns {Promise<typeof import('../tools/page-tools.js')>} */
export const withTools = () => import('../tools/page-tools.js');

/** Shows the calls of a message, folded above its text. @param {Element} node of the message @param {boolean} isOver */
export async function showCalls(node, message, isOver = false) {
  const { show } = await withTools();
  show(node, message, thumbInMessage, isOver);
}

// SPDX-License-Identifier: MIT
// What has to do with tools comes with the first call, or with the first question for which there are some: a file of
// its own (page-tools.js).

/** @returns {Promise<typeof import('./page-tools.js')>} */
export const withTools = () => import('./page-tools.js');

/** Calls of a message as they are now, folded above its text. @param {Element} node of the message */
export async function showCalls(node, message) {
  const { show } = await withTools();
  show(node, message);
}

// SPDX-License-Identifier: MIT
// A shown reply as markup for the clipboard, without what only the page needs: buttons, classes, frames of code.

/** Attributes that mean something in other programs. */
const KEPT = ['href', 'dir', 'start', 'display', 'checked', 'type'];

/** Replaces each of some elements by others. */
const replace = (root, selector, nodesOf) => {
  for (const node of root.querySelectorAll(selector)) node.replaceWith(...nodesOf(node));
};

/** @param {Element} prose @returns {Blob} */
export function htmlOf(prose) {
  const root = prose.cloneNode(true);
  replace(root, '.code', (node) => [node.querySelector('pre')]);
  replace(root, 'pre span, .table, .formula, button', (node) => node.childNodes);
  replace(root, 'input', (node) => [node.checked ? '☑' : '☐']);
  for (const node of root.querySelectorAll('*')) for (const name of node.getAttributeNames())
    if (!KEPT.includes(name) && !node.closest('math')) node.removeAttribute(name);
  const writer = new XMLSerializer();
  const markup = [...root.childNodes].map((node) => writer.serializeToString(node)).join('\n');
  return new Blob([markup.replaceAll(' xmlns="http://www.w3.org/1999/xhtml"', '')], { type: 'text/html' });
}

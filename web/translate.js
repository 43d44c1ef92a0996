// SPDX-License-Identifier: MIT
// Translates the markup of index.html, once, before it is shown: texts, and attributes that people see or hear, also
// those of templates. A text is a key as a whole, without white space around it. What is marked translate="no" stays.
// The file is fetched by boot.js, for other languages than English.

/** Attributes with words. */
export const SPOKEN = ['aria-label', 'title', 'placeholder', 'alt'];

/** A text of the markup as a key. */
export const keyOf = (text) => text.replaceAll(/\s+/g, ' ').trim();

/** @param {Record<string, string>} table */
export function translate(table) {
  const pages = [...document.querySelectorAll('template')].map(({ content }) => content);
  for (const page of [document, ...pages]) {
    const filter = (node) => (node.translate === false ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walker = document.createTreeWalker(page, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, filter);
    while (walker.nextNode()) say(walker.currentNode, table);
  }
}

function say(node, table) {
  const said = node.nodeType === Node.TEXT_NODE && table[keyOf(node.data)];
  if (said) node.data = node.data.replace(/\S(?:[^]*\S)?/, () => said);
  for (const name of node.attributes ? SPOKEN : []) {
    const words = table[keyOf(node.getAttribute(name) ?? '')];
    if (words) node.setAttribute(name, words);
  }
}

// SPDX-License-Identifier: MIT
// Shows formulas as MathML, by temml. Fetched with the first formula. The text is hostile: temml may not trust it (no
// links, classes or images), macros and sizes are limited, what is too deep or too large for a browser's layout is
// refused, and attributes by which other parts of the page could be found are removed. A formula that is refused stands
// as it was typed.
import temml from 'temml';
import { styled } from './styled.js';

/** Longest formula, in characters. */
const MAX_TEX = 4000;

/** Most elements, and deepest nesting, of a formula: a browser's layout recurses. */
const MAX_ELEMENTS = 4000;
const MAX_DEPTH = 64;

/** Limits of sizes: em, and CSS points. */
const MAX_SIZE = [20, 200];

const LIMITS = { throwOnError: true, trust: false, maxExpand: 500, maxSize: MAX_SIZE };

const ready = styled('mathematics.css');

/** Whether a tree of temml's is small enough to become elements. */
function isSmall(tree) {
  let left = MAX_ELEMENTS;
  const fits = ({ children = [] }, depth) =>
    depth < MAX_DEPTH && left-- > 0 && children.every((child) => fits(child, depth + 1));
  return fits(tree, 0);
}

/** @returns {?Element} null if the formula is refused */
function mathOf(tex, displayMode) {
  if (tex.length > MAX_TEX) return null;
  try {
    const tree = temml.__renderToMathMLTree(tex, { ...LIMITS, displayMode });
    if (!isSmall(tree)) return null;
    const math = tree.toNode();
    for (const node of math.querySelectorAll('[id], [href]')) {
      node.removeAttribute('id');
      node.removeAttribute('href');
    }
    return math;
  } catch {
    return null;
  }
}

/** Makes a formula of an element that shows its source. */
export async function show(node, tex, isDisplay) {
  const math = mathOf(tex.trim(), isDisplay);
  if (!math) return;
  await ready;
  node.replaceChildren(math);
}

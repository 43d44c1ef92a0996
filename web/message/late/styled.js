// SPDX-License-Identifier: MIT
// Styles and icons that come with code that is fetched late.

const SVG = 'http://www.w3.org/2000/svg';

/** Adds an image to the sprite of the page. @param {string} d its path, in a square of 24 */
export function addIcon(name, d) {
  const [symbol, path] = ['symbol', 'path'].map((tag) => document.createElementNS(SVG, tag));
  symbol.id = `i-${name}`;
  symbol.setAttribute('viewBox', '0 0 24 24');
  path.setAttribute('d', d);
  symbol.append(path);
  document.querySelector('.sprite').append(symbol);
}

/** Fetches a style sheet that lies beside this code. Resolves when it applies, or if there is none. */
export function styled(name) {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = `./late/${name}`;
  const done = new Promise((resolve) => { link.onload = link.onerror = resolve; });
  document.head.append(link);
  return done;
}

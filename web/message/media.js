// SPDX-License-Identifier: MIT
// Pictures and films as they are shown: small, each by its name. Their files stay as they were given; what the model gets of them is the library's.
import { element } from '../shell/dom.js';
import { oneLine } from '../shell/format.js';

/** @typedef {{type: 'image' | 'video', name: string, blob: Blob}} Medium of a message of the visitor's */

/** What a file may be here. SVG runs scripts and is no picture of pixels. @returns {'image' | 'video' | ''} */
function kindOf({ type, name = '' }) {
  if (/^image\/(?!svg)/.test(type) || /\.(heic|heif)$/i.test(name)) return 'image';
  return type.startsWith('video/') ? 'video' : '';
}

/** @param {Blob & {name?: string}} file @returns {Medium | null} */
export function mediumOf(file) {
  const type = kindOf(file);
  return type ? { type, name: oneLine(file.name ?? '', 80) || (type === 'image' ? 'Picture' : 'Film'), blob: file } : null;
}

/** @param {Medium} medium @returns {Element} which lets go of the file once it shows it */
export function thumb({ type, name, blob }) {
  const src = URL.createObjectURL(blob);
  const done = () => URL.revokeObjectURL(src);
  if (type === 'video') return element('video', { className: 'thumb', src, muted: true, controls: true, preload: 'metadata', 'aria-label': name });
  const node = element('img', { className: 'thumb', src, alt: name, decoding: 'async', onload: done });
  node.addEventListener('error', () => {
    done();
    node.replaceWith(element('span', { className: 'thumb unseen' }, name));    // such as HEIC where the browser does not know it
  });
  return node;
}

// SPDX-License-Identifier: MIT
// Shows images and videos, small and with their names. Their files stay unchanged; the library prepares them for the
// model.
import { element, iconButton } from '../shell/dom.js';
import { oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';

/** @typedef {{type: 'image' | 'video', name: string, blob: Blob}} Medium of a message of the visitor's */

/** The kind of a file. SVG is refused, since it can run scripts and has no pixels. @returns {'image' | 'video' | ''} */
function kindOf({ type, name = '' }) {
  if (/^image\/(?!svg)/.test(type) || /\.(?:hei[cf]|avif|tiff?|jxl)$/i.test(name)) return 'image';
  return type.startsWith('video/') ? 'video' : '';
}

/** @param {Blob & {name?: string}} file @returns {Medium | null} */
export function mediumOf(file) {
  const type = kindOf(file);
  return type
    ? { type, name: oneLine(file.name ?? '', 80) || (type === 'image' ? say`Image` : say`Video`), blob: file }
    : null;
}

/** One address for each file, however often it is shown; released with the file. */
const urls = new WeakMap();
const forgotten = new FinalizationRegistry((url) => URL.revokeObjectURL(url));

function urlOf(blob) {
  if (!urls.has(blob)) {
    urls.set(blob, URL.createObjectURL(blob));
    forgotten.register(blob, urls.get(blob));
  }
  return urls.get(blob);
}

/** @param {Medium} medium @returns {Element} */
export function thumb({ type, name, blob }) {
  const src = urlOf(blob);
  if (type === 'video')
    return element('video', { className: 'thumb', src, muted: true, preload: 'metadata', 'aria-label': name });
  const node = element('img', { className: 'thumb', src, alt: name, decoding: 'async' });
  // The browser cannot show it, for example HEIC.
  node.addEventListener('error', () =>
    (node.closest('button') ?? node).replaceWith(element('span', { className: 'thumb unseen' }, name)),
  );
  return node;
}

/** @param {Medium} medium @returns {Element} for a message; an image can be enlarged */
export function thumbInMessage(medium) {
  const node = thumb(medium);
  if (medium.type === 'video') {
    node.controls = true;
    return node;
  }
  const label = say`Show ${medium.name} larger`;
  return element(
    'button',
    { type: 'button', className: 'enlarge', title: label, 'aria-label': label, onclick: () => enlarge(medium) },
    node,
  );
}

function enlarge({ name, blob }) {
  const close = () => dialog.close();
  const dialog = element(
    'dialog',
    { className: 'larger', 'aria-label': name, onclick: close, onclose: () => dialog.remove() },
    element('img', { src: urlOf(blob), alt: name }),
    iconButton('close', say`Close`, close),
  );
  document.body.append(dialog);
  dialog.showModal();
}

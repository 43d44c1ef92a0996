// SPDX-License-Identifier: MIT
// The dialog in which HTML or SVG of a reply is shown, in the frame of preview.html, which says how it is kept apart.
import { element, iconButton } from '../../shell/dom.js';

const REFUSED = 'The server of this page does not allow previews.';

export function openPreview(markup) {
  const close = () => dialog.close();
  const frame = element('iframe', { src: './late/preview.html', title: 'Preview' });
  frame.addEventListener('load', () => {
    if (frame.contentDocument?.title === 'quern preview') frame.contentWindow.postMessage(markup, location.origin);
    else frame.replaceWith(element('p', {}, REFUSED));
  });
  const dialog = element('dialog', { className: 'preview', 'aria-label': 'Preview', onclose: () => dialog.remove() },
    element('div', { className: 'preview-head' }, element('strong', {}, 'Preview'),
      element('span', {}, 'It cannot reach the network or this page.'), iconButton('close', 'Close', close)), frame);
  document.body.append(dialog);
  dialog.showModal();
}

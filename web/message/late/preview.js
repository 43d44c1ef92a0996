// SPDX-License-Identifier: MIT
// The dialog in which HTML or SVG of a reply is shown, in the frame of preview.html, which says how it is kept apart.
import { element, iconButton } from '../../shell/dom.js';
import { say } from '../../shell/words.js';

const REFUSED = say`The server of this page does not allow previews.`;

export function openPreview(markup) {
  const close = () => dialog.close();
  const frame = element('iframe', { src: './late/preview.html', title: say`Preview` });
  frame.addEventListener('load', () => {
    if (frame.contentDocument?.title === 'quern preview') frame.contentWindow.postMessage(markup, location.origin);
    else frame.replaceWith(element('p', {}, REFUSED));
  });
  const dialog = element('dialog', { className: 'preview', 'aria-label': say`Preview`, onclose: () => dialog.remove() },
    element('div', { className: 'preview-head' }, element('strong', {}, say`Preview`),
      element('span', {}, say`It cannot reach the network or this page.`), iconButton('close', say`Close`, close)), frame);
  document.body.append(dialog);
  dialog.showModal();
}

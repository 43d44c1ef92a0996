// SPDX-License-Identifier: MIT
// The dialog for choosing files.
import { element } from '../shell/dom.js';

/**
 * @param {string} accept kinds of files
 * @param {object} [more] attributes of the field; with `capture` a phone opens its camera
 * @returns {Promise<File[]>} the chosen files
 */
export function pickFiles(accept, more = { multiple: true }) {
  return new Promise((done) => {
    const input = element('input', { type: 'file', accept, ...more });
    input.addEventListener('change', () => done([...input.files]));
    input.addEventListener('cancel', () => done([]));
    input.click();
  });
}

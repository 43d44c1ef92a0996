// SPDX-License-Identifier: MIT
// What the rows of the model dialog get when it is open: the speeds of their models, and for those on this device a
// button that lets another model answer the last question too. Models that search in documents have a part of their
// own (searching.js). Fetched with the first dialog.
import { button, byId } from '../../shell/dom.js';
import { say } from '../../shell/words.js';
import { isEmbedder } from './embedder.js';
import { furnishSearch } from './searching.js';
import { showSpeeds } from './speeds.js';

/**
 * @param {object} dialog
 * @param {import('../session.js').Session} dialog.session
 * @param {string} dialog.variant of the engine that runs here
 * @param {string} dialog.inUse address of the model in use
 * @param {(choice: import('../session.js').Choice) => void} dialog.onCompare
 * @param {() => void} dialog.onStored the list of stored models is another
 */
export function furnish({ session: { library, model }, variant, inUse, onCompare, onStored }) {
  const sheet = byId('model-dialog');
  furnishSearch({ ...library, model, onStored });
  for (const row of document.querySelectorAll('#stored-list li[data-url]')) {
    const { url, vision, name, complete } = row.dataset;
    const actions = row.querySelector('.row-actions:not([role])');     // none while the row asks something
    if (url === inUse || complete !== 'true' || !actions || row.querySelector('.compare')) continue;
    if (isEmbedder(name)) continue;
    const choice = { source: url, ...(vision && { vision }), label: name, kind: 'url' };
    const begin = () => {
      sheet.close();
      onCompare(choice);
    };
    const compare = button(say`Compare`, begin, 'button compare');
    compare.setAttribute('aria-label', say`Compare ${name} with the model in use`);
    actions.firstElementChild.after(compare);
  }
  return showSpeeds(library.load, variant, () => sheet.open);
}

// SPDX-License-Identifier: MIT
// The switches of the tools in the settings, fetched with them. What is on is stored apart (choice.js).
import { byId, element } from '../shell/dom.js';
import { isOn, turn } from './choice.js';

/** The page's own tools in the words of the visitor. */
const OWN = [
  ['now', 'Date and time', 'What the clock of this device shows.'],
  ['calculate', 'Calculator', 'Arithmetic, computed in this page.'],
  ['search_documents', 'Search in documents', 'Finds passages in the documents of the conversation.'],
  [
    'run_javascript', 'JavaScript',
    'Runs programs that the model writes, apart from this page and without a network, for 5 seconds at most.',
  ],
];

const NOT_STORED = 'This browser does not let the page store which tools are on.';
const NOTE = 'Tools that are on may be called, unless tools are set to “None”. Presets and links do not change this list.';

/** A switch, which is named like its row. @param {(on: boolean) => boolean} change whether it worked */
function switchOf(title, on, change) {
  const node = element('button', { type: 'button', className: 'switch' }, element('span', { className: 'track' }));
  node.setAttribute('role', 'switch');
  node.setAttribute('aria-label', title);
  const show = () => node.setAttribute('aria-checked', String(on));
  node.onclick = () => {
    if (change(!on)) on = !on;
    show();
  };
  show();
  return node;
}

/** A row with a title, a sentence and what one can do. */
const row = (title, sentence, ...actions) => element('li', {},
  element('div', { className: 'row-text' }, element('strong', {}, title), element('p', {}, sentence)), ...actions);

/** Shows all switches. */
export function showTools() {
  const note = element('p', { className: 'hint' }, NOTE);
  const set = (name) => (on) => {
    const worked = turn(name, on);
    note.textContent = worked ? NOTE : NOT_STORED;
    return worked;
  };
  const rows = OWN.map(([name, title, sentence]) => row(title, sentence, switchOf(title, isOn(name), set(name))));
  const list = element('ul', { className: 'shelf' }, ...rows);
  list.setAttribute('aria-label', 'Which may be called');
  byId('tool-switches').replaceChildren(list, note);
}

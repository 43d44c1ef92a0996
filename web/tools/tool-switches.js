// SPDX-License-Identifier: MIT
// The switches of the tools in the settings, and the MCP servers there; fetched with the settings. What is on is stored
// apart (choice.js, servers.js).
import { button, byId, element } from '../shell/dom.js';
import { plural, say } from '../shell/words.js';
import { isOn, turn } from './choice.js';
import { withServers } from './reach.js';
import { row, switchOf } from './rows.js';
import { MOST_TOOLS, removeServer, serverTools, servers, turnServer, watchServers } from './servers.js';

/** The page's own tools in the words of the visitor. */
const OWN = [
  ['now', say`Date and time`, say`What the clock of this device shows.`],
  ['calculate', say`Calculator`, say`Arithmetic, computed in this page.`],
  ['search_documents', say`Search in documents`, say`Finds passages in the documents of the conversation.`],
  [
    'run_javascript', 'JavaScript',
    say`Runs programs that the model writes, apart from this page and without a network, for 5 seconds at most.`,
  ],
];

const NOT_STORED = say`This browser does not let the page store which tools are on.`;
const NOTE = say`Tools that are on may be called, unless “No tools” is chosen. Presets and links do not change this list.`;

const TOO_MANY = say`Only the first 100 tools of servers are offered to models.`;
const SERVERS = say`MCP servers bring more tools. They get what the model writes into calls, if you allow it.`;

const link = (words, action) => button(words, action, 'link-button');

/** How many tools of a server may be called. */
function amountOf({ address, tools }) {
  const { host } = new URL(address);
  const n = tools.filter(({ isOn, problem }) => isOn && !problem).length;
  return plural(n, '{1} tool of {2}', '{1} tools of {2}', host);
}

/** Shows all switches. */
export function showTools() {
  const note = element('p', { className: 'hint' }, serverTools([]).size === MOST_TOOLS ? TOO_MANY : NOTE);
  const set = (name) => (on) => {
    const worked = turn(name, on);
    note.textContent = worked ? NOTE : NOT_STORED;
    return worked;
  };
  const rows = OWN.map(([name, title, sentence]) => row(title, sentence, switchOf(title, isOn(name), set(name))));
  const list = element('ul', { className: 'shelf' }, ...rows, ...servers().map((server) => serverRow(server, note)));
  list.setAttribute('aria-label', say`Which may be called`);
  const add = link(say`Add a server`, () => withServers().then(({ addServer }) => addServer(showTools), tell(note)));
  const box = byId('tool-switches');
  const held = box.contains(document.activeElement);
  box.replaceChildren(list, note, element('p', { className: 'hint' }, SERVERS),
    element('div', { className: 'row-actions' }, add));
  if (held) add.focus();
}

/** Shows a failure in the line below the list. */
const tell = (note) => ({ message }) => { note.textContent = message; };

function serverRow(server, note) {
  const set = (isOn) => {
    const worked = turnServer(server, isOn);
    if (!worked) note.textContent = NOT_STORED;
    return worked;
  };
  const review = async () => {
    note.textContent = say`Asking ${new URL(server.address).host} for its tools…`;
    const { reviewServer } = await withServers();
    await reviewServer(server, showTools);
    note.textContent = NOTE;
  };
  const remove = () => {
    if (!removeServer(server)) {
      note.textContent = NOT_STORED;
      return;
    }
    withServers().then(({ leave }) => leave(server), () => {});     // without this part there is no session
    showTools();
  };
  return row(server.name, amountOf(server), switchOf(server.name, server.isOn, set),
    element('div', { className: 'row-actions' },
      link(say`Its tools`, () => review().catch(tell(note))), link(say`Remove`, remove)));
}

watchServers(showTools);

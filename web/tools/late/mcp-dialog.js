// SPDX-License-Identifier: MIT
// The dialogs in which a visitor adds an MCP server, and looks at its tools. Nothing is sent before the visitor asks
// for the tools, and nothing is used before they were shown, in the words that the model would read.
import { button, element } from '../../shell/dom.js';
import { showSheet } from '../../shell/sheet.js';
import { say, sayOf } from '../../shell/words.js';
import { row, switchOf } from '../rows.js';
import { isAddress, isHeader, putServer } from '../servers.js';
import { Session } from './mcp-session.js';
import { isSame, toolsOf } from './mcp-tools.js';

const NO_ADDRESS = say`This needs an address with https, or with http on this device (localhost), and without a name or password.`;
const NO_HEADER = say`A header has a name and a value: “Authorization: Bearer …”.`;
const WHAT = say`The server is asked for its tools now. It learns that this page asks, and gets the header, if you give one.`;
const HEADER_KEPT = say`The header is kept in this browser only, and sent to this server only.`;
const NOT_STORED = say`It could not be stored: this browser forbids it or has no room, or there are 16 servers already.`;

/** The header in a text `Name: value`; null: there is none; undefined: it cannot be sent. */
function headerOf(text) {
  if (!text.trim()) return null;
  const [, name, value] = /^\s*([^:\s]+):\s*(.*?)\s*$/.exec(text) ?? [];
  return isHeader({ name, value }) ? { name, value } : undefined;
}

const field = (id, label, attributes) => {
  const input = element('input', { id, autocomplete: 'off', spellcheck: false, dir: 'ltr', ...attributes });
  return [input, element('label', { htmlFor: id }, label)];
};

/** Asks a server for its tools. @returns {Promise<{name: string, tools: object[]}>} rejects with a sentence */
async function look(server, signal) {
  const session = new Session(server);
  try {
    await session.connect(signal);
    return { name: session.name, tools: await toolsOf(session, signal) };
  } finally {
    session.end();
  }
}

/** Lets the visitor add a server. @param {() => void} onChange called when one was added */
export function addServer(onChange) {
  const [address, addressLabel] =
    field('server-address', say`Address of an MCP server`, { inputMode: 'url', placeholder: 'https://example.org/mcp' });
  const hidden = { type: 'password', placeholder: 'Authorization: Bearer …' };
  const [header, headerLabel] = field('server-header', say`Header, if the server asks for one`, hidden);
  const said = element('p', { className: 'hint', role: 'status' }, WHAT);
  const leave = new AbortController();
  async function onsubmit(event) {
    event.preventDefault();
    const server = { address: address.value.trim(), header: headerOf(header.value) };
    if (!isAddress(server.address)) return tell(NO_ADDRESS, address);
    if (server.header === undefined) return tell(NO_HEADER, header);
    const { host } = new URL(server.address);
    tell(say`Asking ${host} for its tools…`);
    go.disabled = true;
    try {
      const { name, tools } = await look(server, leave.signal);
      if (leave.signal.aborted) return undefined;
      dialog.close();
      const all = tools.map((tool) => ({ ...tool, isOn: true }));
      return showTools({ ...server, name: name || host, isOn: true }, all, onChange);
    } catch (error) {
      go.disabled = false;
      return tell(error.message, address);
    }
  }
  const go = element('button', { className: 'button primary' }, say`Look at its tools`);
  const tell = (sentence, at) => {
    said.textContent = sentence;
    at?.focus();
  };
  const dialog = showSheet('server', say`Add a server`, element('form', { className: 'stack', onsubmit },
    addressLabel, address, headerLabel, header, element('p', { className: 'hint' }, HEADER_KEPT), said,
    element('div', { className: 'actions' }, go)));
  dialog.addEventListener('close', () => leave.abort());
  address.focus();
}

/**
 * Shows the tools that a server has now. Those that are new or have changed are off until the visitor decides.
 * @param {import('../servers.js').Server} server
 * @returns {Promise<void>} rejects with a sentence
 */
export async function reviewServer(server, onChange) {
  const { tools } = await look(server);
  showTools(server, tools.map((tool) => {
    const seen = server.tools.find((one) => one.name === tool.name && isSame(one, tool));
    return { ...tool, isOn: Boolean(seen?.isOn), problem: tool.problem || seen?.problem || '', isNew: !seen };
  }), onChange);
}

/** One tool as the model would read it, with its switch; a tool that cannot be used has the reason. */
function toolRow(tool) {
  const { name, description, schema, problem, isNew } = tool;
  const use = (on) => {
    tool.isOn = on;
    return true;
  };
  const line = row(name, description, ...(problem ? [] : [switchOf(name, tool.isOn, use)]));
  const about = [problem && say`This tool is left out.`, problem && sayOf(problem), isNew && say`It is new or has changed since you saw it.`];
  line.firstChild.append(element('details', { className: 'thinking' }, element('summary', {}, say`Arguments`),
    element('pre', { tabIndex: 0, dir: 'ltr' }, JSON.stringify(schema, null, 2))));
  line.firstChild.append(...about.filter(Boolean).map((text) => element('p', { className: 'problem' }, text)));
  return line;
}

/** Shows tools, and stores the server with them if the visitor wants to use them. */
function showTools(server, tools, onChange) {
  const { host } = new URL(server.address);
  const said = element('p', { className: 'hint', role: 'status' });
  const list = element('ul', { className: 'shelf' }, ...tools.map(toolRow));
  list.setAttribute('aria-label', say`Tools of the server`);
  const keep = () => {
    const kept = tools.map(({ isNew, ...tool }) => tool);
    if (!putServer({ ...server, tools: kept })) {
      said.textContent = NOT_STORED;
      return;
    }
    dialog.close();
    onChange();
  };
  const gets = say`${host} gets the calls that you allow: what the model writes may repeat anything of the conversation.`;
  const reads = say`The model reads the descriptions below, and the results of calls.`;
  const dialog = showSheet('server-tools', say`Tools of ${server.name}`, element('div', { className: 'stack' },
    element('p', { className: 'hint' }, gets), element('p', { className: 'hint' }, reads), list, said,
    element('div', { className: 'actions' }, button(say`Use these tools`, keep, 'button primary'),
      button(say`Cancel`, () => dialog.close()))));
}

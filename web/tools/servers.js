// SPDX-License-Identifier: MIT
// The MCP servers that the visitor has added, with the tools that were shown to them: a tool is offered to models only
// as it was shown. They are kept in this browser, checked when they are read, and no link or file brings any.
import { oneLine } from '../shell/format.js';
import { read, write } from '../shell/storage.js';

const KEY = 'quern:servers';
const MOST = 16;

/** Most tools that are offered: the engine takes 128, the page's own included. */
export const MOST_TOOLS = 100;

/** @typedef {{name: string, description: string, schema: object, problem: string, isOn: boolean}} Tool */
/** @typedef {{address: string, name: string, header: ?{name: string, value: string}, isOn: boolean, tools: Tool[]}} Server */

/** Addresses: https, or a server of this device. The page's policy allows no others. */
export function isAddress(address) {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, username } = new URL(address);
  const isHere = protocol === 'http:' && ['localhost', '127.0.0.1'].includes(hostname);
  return (protocol === 'https:' || isHere) && !username;
}

const text = (value) => (typeof value === 'string' ? value : '');

/** Whether a header can be sent. */
export const isHeader = (header) =>
  /^[\w-]{1,64}$/.test(text(header?.name)) && /^[!-~](?:[ -~]{0,4000}[!-~])?$/.test(text(header.value));

const all = (value) => (Array.isArray(value) ? value : []);

/** @returns {?Tool} */
function checkTool(value) {
  if (!text(value?.name) || typeof value.schema !== 'object' || value.schema === null) return null;
  const { name, schema } = value;
  const [description, problem] = [value.description, value.problem].map(text);
  return { name, description, schema, problem, isOn: value.isOn === true };
}

/** @returns {?Server} */
function checkServer(value) {
  if (!isAddress(text(value?.address))) return null;
  const { address, header } = value;
  return {
    address, header: isHeader(header) ? { name: header.name, value: header.value } : null,
    name: oneLine(text(value.name), 80) || new URL(address).host,
    isOn: value.isOn === true, tools: all(value.tools).map(checkTool).filter(Boolean),
  };
}

/** @returns {Server[]} */
export const servers = () => all(read(KEY)).map(checkServer).filter(Boolean).slice(0, MOST);

/** Stores a server in the place of the one with its address; at the end, if there is none. @returns {boolean} done */
export function putServer(server) {
  const others = servers();
  const at = others.findIndex(({ address }) => address === server.address);
  if (at < 0 && others.length >= MOST) return false;
  others.splice(at < 0 ? others.length : at, 1, server);
  return write(KEY, others);
}

export const removeServer = ({ address }) => write(KEY, servers().filter((one) => one.address !== address));

/** Changes fields of a server, unless it was removed, also in another tab. @returns {boolean} done */
function change({ address }, fields) {
  const now = servers().find((one) => one.address === address);
  return Boolean(now) && putServer({ ...now, ...fields(now) });
}

export const turnServer = (server, isOn) => change(server, () => ({ isOn }));

/** Leaves a tool out, because the engine cannot make its calls. */
export const leaveOut = ({ server, tool }, problem) => change(server, ({ tools }) => (
  { tools: tools.map((one) => (one.name === tool.name ? { ...one, problem } : one)) }));

/** @param {() => void} onChange called when another tab has changed the servers */
export const watchServers = (onChange) => addEventListener('storage', ({ key }) => { if (key === KEY) onChange(); });

const LETTERS = 64;
const plain = (name) => name.replaceAll(/[^\w-]+/g, '_').slice(0, LETTERS);

/**
 * The tools of all servers that may be called, by names for a model: those of the servers, with the name of the server
 * in front where two are the same.
 * @param {string[]} taken other names
 * @returns {Map<string, {server: Server, tool: Tool}>}
 */
export function serverTools(taken) {
  const found = new Map();
  const isTaken = (name) => !name || taken.includes(name) || found.has(name);
  for (const server of servers().filter(({ isOn }) => isOn)) {
    for (const tool of server.tools.filter(({ isOn, problem }) => isOn && !problem)) {
      if (found.size === MOST_TOOLS) return found;
      let name = plain(tool.name);
      if (isTaken(name)) name = plain(`${server.name}_${tool.name}`);
      for (let i = 2; isTaken(name); i++) name = `${plain(tool.name).slice(0, LETTERS - 4)}_${i}`;
      found.set(name, { server, tool });
    }
  }
  return found;
}

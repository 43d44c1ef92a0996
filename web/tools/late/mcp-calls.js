// SPDX-License-Identifier: MIT
// Calls tools of MCP servers. A server has one session, which begins with its first call and ends some minutes after
// its last one. Its list of tools is read then and again: a tool that is no longer as the visitor has seen it is not
// called.
import { Session } from './mcp-session.js';
import { isSame, resultOf, toolsOf } from './mcp-tools.js';
import { picturesOf } from './pictures.js';

/** Milliseconds after which the list of tools is read again, and after which a session without a call ends. */
const LIST_AGE = 300_000;
const IDLE = 300_000;

const CHANGED = 'The server has changed this tool since the user allowed it. The user has to look at it in the settings.';
const GONE = 'The server no longer has this tool. The user has to look at its tools in the settings.';

/** Server and header -> promise of {session, tools, read, timer}. */
const known = new Map();

async function begin(server, signal) {
  const session = new Session(server);
  await session.connect(signal);
  return { session, tools: await toolsOf(session, signal), read: performance.now() };
}

const keyOf = ({ address, header }) => JSON.stringify([address, header]);

/** Ends the session of a server that the visitor has removed. */
export function leave(server) {
  const key = keyOf(server);
  known.get(key)?.then(({ session, timer }) => {
    clearTimeout(timer);
    session.end();
  }, () => {});
  known.delete(key);
}

/** The session of a server with its list of tools, which is not old. */
async function opened(server, signal) {
  const key = keyOf(server);
  if (!known.has(key)) known.set(key, begin(server, signal));
  try {
    const one = await known.get(key);
    if (one.session.isStale || performance.now() - one.read > LIST_AGE)
      Object.assign(one, { tools: await toolsOf(one.session, signal), read: performance.now() });
    clearTimeout(one.timer);
    one.timer = setTimeout(() => {
      known.delete(key);
      one.session.end();
    }, IDLE);
    return one;
  } catch (error) {
    known.delete(key);
    throw error;
  }
}

/** What a notification about progress says, as a few letters. */
const progressText = ({ progress, total, message }) =>
  typeof message === 'string' && message ? message.slice(0, 100)
    : total > 0 ? `${Math.floor((100 * progress) / total)} %` : String(progress).slice(0, 20);

/**
 * Calls a tool, which the visitor has allowed.
 * @param {{server: object, tool: object}} one of servers.js
 * @param {{signal: AbortSignal, sees: boolean, onProgress: (text: string) => void}} how signal: ends the call, and the
 *   server is told; sees: the model has vision
 * @returns {Promise<string | import('quern').Part[]>} the result; rejects with a sentence
 */
export async function callTool({ server, tool }, given, { signal, sees, onProgress }) {
  const { session, tools } = await opened(server, signal);
  const now = tools.find(({ name }) => name === tool.name);
  if (!now || !isSame(now, tool)) throw new Error(now ? CHANGED : GONE);
  const call = { name: tool.name, arguments: given };
  const result = await session.request('tools/call', call, {
    signal, onProgress: (progress) => onProgress(progressText(progress)),
  });
  const pictures = await picturesOf(sees ? result.content : []);
  const text = resultOf(result, pictures);
  if (!pictures.size) return text;
  return [...Array.from(pictures.values(), (image) => ({ type: 'image', image })), { type: 'text', text }];
}

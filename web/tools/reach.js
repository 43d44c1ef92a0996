// SPDX-License-Identifier: MIT
// Loads what reaches MCP servers (late/mcp.js), which is kept on this device from its first use on.
import { say } from '../shell/words.js';

const MISSING = say`The part of this page that reaches servers is not on this device yet: it comes with a connection.`;

/** @returns {Promise<typeof import('./late/mcp.js')>} rejects with a sentence */
export const withServers = () => import('./late/mcp.js').catch(() => { throw new Error(MISSING); });

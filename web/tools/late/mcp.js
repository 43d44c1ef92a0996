// SPDX-License-Identifier: MIT
// MCP servers: the dialogs in which they are added and looked at, and the calls of their tools. The page fetches this
// file when the visitor adds a server, or when a model calls a tool of one.
export { callTool, leave } from './mcp-calls.js';
export { addServer, reviewServer } from './mcp-dialog.js';

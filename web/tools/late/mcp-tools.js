// SPDX-License-Identifier: MIT
// What an MCP server says of its tools and of a call's result, checked and cut to what this page can use. A tool that
// it cannot use is left out with a sentence. Everything stays a text.
import { key } from '../../shell/words.js';

/** Most pages of a list, and most tools of a server. */
const PAGES = 20;
const TOOLS = 64;

/** Most letters of a name and of a description, and of a schema as JSON, and how deep a schema is. */
const NAME = 128;
const DESCRIPTION = 2000;
const SCHEMA = 16_000;
const DEEP = 24;

/** Most parts and letters of a result. */
const PARTS = 100;
const RESULT = 20_000;

/** A text without letters that nobody sees, by which it could tell a model something else than a visitor. */
const visible = (value) => value.replaceAll(/[^\P{C}\n\t]/gu, '');

const text = (value, most) => (typeof value === 'string' ? value.slice(0, most) : '');

function isDeep(value) {
  let level = [value];
  for (let depth = 0; depth < DEEP && level.length; depth++)
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  return level.length > 0;
}

/** Why a schema cannot be used, or ''. */
function problemOf(schema) {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return key('It has no schema of its arguments.');
  if ((schema.type ?? 'object') !== 'object') return key('Its arguments are no object.');
  if (isDeep(schema)) return key('The schema of its arguments is nested too deeply.');
  return JSON.stringify(schema).length > SCHEMA ? key('The schema of its arguments has more than 16,000 letters.') : '';
}

/** A tool with the known fields only; `problem` says why it is left out. */
function checked(raw) {
  const name = text(raw?.name, NAME + 1);
  if (!name || name.length > NAME || /[\p{C}]/u.test(name)) return null;
  const problem = problemOf(raw.inputSchema);
  return {
    name, description: visible(text(raw.description, DESCRIPTION)), problem,
    schema: problem ? {} : JSON.parse(visible(JSON.stringify(raw.inputSchema))),
  };
}

/**
 * The tools of a server, of all pages of its list.
 * @param {import('./mcp-session.js').Session} session
 * @returns {Promise<Array<{name: string, description: string, schema: object, problem: string}>>}
 */
export async function toolsOf(session, signal) {
  const found = new Map();
  let cursor;
  for (let page = 0; page < PAGES && found.size < TOOLS; page++) {
    const { tools, nextCursor } = await session.request('tools/list', { ...(cursor && { cursor }) }, { signal });
    for (const tool of (Array.isArray(tools) ? tools : []).slice(0, TOOLS).map(checked))
      if (tool && !found.has(tool.name)) found.set(tool.name, tool);
    if (typeof nextCursor !== 'string' || !nextCursor || nextCursor === cursor) break;
    cursor = nextCursor;
  }
  session.isStale = false;
  return [...found.values()].slice(0, TOOLS);
}

/** Whether a tool is still what the visitor has seen. */
export const isSame = (a, b) =>
  a.description === b.description && JSON.stringify(a.schema) === JSON.stringify(b.schema);

/** One part of a result as a text. */
const PART = {
  text: (part) => text(part.text, RESULT + 1),
  image: (part, pictures) => (pictures.has(part) ? '(An image.)' : '(An image, which is not passed on.)'),
  audio: () => '(A sound, which is not passed on.)',
  resource_link: ({ title, name, uri, description }) =>
    [text(title ?? name, NAME), text(uri, DESCRIPTION), text(description, DESCRIPTION)].filter(Boolean).join('\n'),
  resource({ resource }) {
    const at = text(resource?.uri, DESCRIPTION);
    return typeof resource?.text === 'string' ? `${at}\n${text(resource.text, RESULT + 1)}` : `${at}\n(A file, which is not passed on.)`;
  },
};


/**
 * A result as the model reads it.
 * @param {Map<object, Blob>} [pictures] parts that the model sees
 * @returns {string} thrown, if the tool has failed
 */
export function resultOf({ content, structuredContent, isError }, pictures = new Map()) {
  const textOf = (part) => (Object.hasOwn(PART, part?.type) ? PART[part.type](part, pictures) : '');
  const parts = (Array.isArray(content) ? content : []).slice(0, PARTS).map(textOf).filter(Boolean);
  if (!parts.length && structuredContent !== undefined) parts.push(JSON.stringify(structuredContent));
  const all = parts.join('\n\n');
  const result = all.length > RESULT ? `${all.slice(0, RESULT)}\n(The rest is left out.)` : all || '(The result is empty.)';
  if (isError === true) throw new Error(result);
  return result;
}

// SPDX-License-Identifier: MIT
// A chat template in a file of its own is text of any kind, which the engine would not know by its bytes. Its name
// tells what it is, and only those who find the files know names; so here, between finding and feeding, it becomes JSON
// (src/cli/cli_described.c does it for the native program).
//
// Nobody lists a folder on a server, so files that few models have are asked for by name, and many servers answer with
// their own page instead of 404: that is as if there were none.

import { QuernError } from '../shared/errors.js';
import { MODULES, templateName } from '../shared/folder.js';

const PAGE = /^\s*<(?:!doctype|html|head|\?xml)/i;
const MOST_BYTES = 10 << 20;

async function textOf(chunks) {
  const parts = [];
  let left = MOST_BYTES;
  for await (const chunk of chunks) {
    left -= chunk.length;
    if (left < 0)
      throw new QuernError('model/format', 'A chat template has more than 10 MiB.', {
        phase: 'load',
        detail: { rule: 'template' },
      });
    parts.push(chunk.slice());
  }
  return new Blob(parts).text();
}

async function* asJson(name, chunks) {
  const text = await textOf(chunks);
  const json = name ? JSON.stringify({ chat_template_files: [{ name, template: text }] }) : text;
  yield new TextEncoder().encode(PAGE.test(text) ? '{}' : json);
}

/**
 * The chunks of a file as the engine reads them.
 * @param {string | undefined} path @param {AsyncIterable<Uint8Array>} chunks @returns {AsyncIterable<Uint8Array>}
 */
export function described(path = '', chunks) {
  const name = templateName(path);
  return name || path.endsWith(MODULES) ? asJson(name, chunks) : chunks;
}

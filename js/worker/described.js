// SPDX-License-Identifier: MIT
// Turns a chat template that is a file of its own into JSON. Such a template is any text, which the engine cannot
// recognise by its bytes; only the file's name tells. Names are known only to the code that finds the files, so the
// change happens here, between finding and feeding (src/cli/cli_described.c does it for the native program).
//
// A server's folder cannot be listed, so files that few models have are requested by name. Many servers answer with a
// page of their own instead of 404; such a page counts as a missing file.

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
 * The chunks of a file in the form that the engine reads.
 * @param {string | undefined} path @param {AsyncIterable<Uint8Array>} chunks @returns {AsyncIterable<Uint8Array>}
 */
export function described(path = '', chunks) {
  const name = templateName(path);
  return name || path.endsWith(MODULES) ? asJson(name, chunks) : chunks;
}

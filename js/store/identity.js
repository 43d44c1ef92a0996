// SPDX-License-Identifier: MIT
// The `id` of a model in a store: its address, as far as it identifies the file. A complete signature of a known kind
// is left out, since it changes with each download. Any other part of a query may identify the file, or may be secret:
// unless it is known to be harmless, a hash replaces the whole query. Such an id is a name that finds and removes the
// model, but it is not an address to download from.

import { badParam } from '../shared/errors.js';
import { hex } from '../shared/chunk.js';

/** Signatures: the parameters that all of a kind have, and others that may occur with them. */
const SIGNATURES = [
  { has: ['x-amz-signature', 'x-amz-credential'], also: /^(?:x-amz-.*|x-id|response-.*)$/ },
  { has: ['x-goog-signature', 'x-goog-credential'], also: /^(?:x-goog-.*|response-.*)$/ },
  { has: ['awsaccesskeyid', 'signature', 'expires'], also: /^(?:x-amz-security-token|response-.*)$/ },
  { has: ['googleaccessid', 'signature', 'expires'], also: /^response-.*$/ },
  { has: ['key-pair-id', 'signature'], also: /^(?:policy|expires|hash-algorithm|response-.*)$/ },
  { has: ['sig', 'sv'], also: /^(?:s[eprtis]|spr|sip|srt|ses|sdd|sk(?:oid|tid|t|e|s|v)|rsc[cdelt])$/ },
];

/** Names and values that identify a file, and that anybody may know. */
const PLAIN_NAME = /^(?:revision|ref|branch|file|file_?name|file_?path|path)$/i;
const PLAIN_VALUE = /^[\w./ -]{1,200}$/;

const NAME = /#query=[0-9a-f]{32}$/;

function withoutSignature(params) {
  const names = new Set([...params.keys()].map((name) => name.toLowerCase()));
  const { has, also } = SIGNATURES.find((kind) => kind.has.every((name) => names.has(name))) ?? { has: [] };
  return [...params].filter(([name]) => !has.includes(name.toLowerCase()) && !also?.test(name.toLowerCase()));
}

/** Hash of a text. In a page that is not served securely there is no hash (''), and nothing is stored. */
export async function hashOf(text) {
  const digest = await globalThis.crypto?.subtle?.digest('SHA-256', new TextEncoder().encode(text));
  return digest ? hex(new Uint8Array(digest, 0, 16)) : '';
}

/** An address without its query and fragment. */
export const plainUrl = (url) => new URL(url).origin + new URL(url).pathname;

/** @param {string} url of the (first) file, or of a folder @returns {Promise<string>} '' if it is not on a server */
export async function idOf(url) {
  const { protocol, searchParams } = new URL(url);
  if (!/^https?:$/.test(protocol)) return '';
  const rest = withoutSignature(searchParams);
  const query = new URLSearchParams(rest).toString();
  const plain = plainUrl(url);
  if (!query) return plain;
  const isPlain = rest.every(([name, value]) => PLAIN_NAME.test(name) && PLAIN_VALUE.test(value));
  return isPlain ? `${plain}?${query}` : `${plain}#query=${await hashOf(`${plain}?${query}`)}`;
}

/** @param {object} source as located by source.js @returns {Promise<string>} '' if it is not stored */
export async function idOfSource({ kind, id, folder, urls }) {
  return id ?? (kind === 'urls' ? idOf(folder ?? urls[0]) : '');
}

/** Whether an address is the name of a stored model. */
export const isName = (url) => NAME.test(url);

export const onlyName = () => badParam('source',
  'is the name of a stored model that is not complete; give its whole address, since the name is only a part of it');

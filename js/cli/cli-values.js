// SPDX-License-Identifier: MIT
// Reads the values of options. Each refusal names the option, and never repeats the value of a header.

import { badParam } from '../shared/errors.js';
import { QUANTIZED } from '../shared/options.js';
import { platform } from '../page/platform-node.js';

const quoted = (text) => `'${text.slice(0, 64)}'`;

export function numberOf(text, flag) {
  if (text === undefined) return undefined;
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text))
    throw badParam(flag, `must be a number, not ${quoted(text)}`);
  return Number(text);
}

export function wholeOf(text, flag, [least, most]) {
  const value = numberOf(text, flag);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw badParam(flag, `must be a whole number from ${least} to ${most}, not ${quoted(text)}`);
  }
  return value;
}

const UNITS = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** Reads 4GB, 4GiB, 512MB, or a number of bytes. */
export function bytesOf(text, flag) {
  if (text === undefined) return undefined;
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?) ?([kmgt]?i?b)?$/i.exec(text) ?? [];
  const scale = UNITS[unit.toLowerCase()];
  if (number === undefined || !scale)
    throw badParam(flag, `must be a number of bytes such as 4GB, 4GiB or 512MB, not ${quoted(text)}`);
  return Math.floor(Number(number) * scale);
}

/** Types for weights or for embeddings; 'auto' is for both together only. */
const TYPES = QUANTIZED.slice(0, -1);

/**
 * Reads a type for all weights, 'auto', or two types with a slash between them: of the layers and of the embeddings.
 */
export function quantizeOf(text, flag) {
  if (text === undefined || text === 'auto' || TYPES.includes(text)) return text;
  const [weights, embeddings, ...more] = text.split('/');
  if (TYPES.includes(weights) && TYPES.includes(embeddings) && more.length === 0) return { weights, embeddings };
  throw badParam(
    flag,
    `must be none, q8, q4 or auto, or two of the first three with a slash between, for weights and embeddings, not ${quoted(text)}`,
  );
}

/** Reads decimal ids, separated by spaces or single commas. */
export function tokenIds(text, flag) {
  if (text === undefined) throw badParam(flag, 'is missing');
  if (!/^\s*\d+(?:(?:\s*,\s*|\s+)\d+)*\s*$/.test(text)) {
    throw badParam(flag, 'must be token ids, decimal numbers with a space or a comma between them');
  }
  return text.match(/\d+/g).map(Number);
}

// --- headers ---

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)$/;

/** Whether a token for Hugging Face may be sent to this address. */
function isHub(url) {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' && /(?:^|\.)(?:huggingface\.co|hf\.co)$/.test(hostname);
}

/** Whether all files of a model and its projector that are on servers come from Hugging Face. */
function isOnHub(sources) {
  const addresses = [sources].flat().filter((source) => source !== undefined).flatMap((source) => {
    const { urls = [], folder = [] } = platform.resolveSource(source).source;
    return [...urls, ...[folder].flat()];
  });
  return addresses.length > 0 && addresses.every(isHub);
}

/** The token in the environment. QUERN_TOKEN comes before HF_TOKEN, which other programs use too. */
function tokenOf({ QUERN_TOKEN, HF_TOKEN }) {
  const token = (QUERN_TOKEN || HF_TOKEN || '').trim();
  if (!/^[\x21-\x7e]*$/.test(token))
    throw badParam(QUERN_TOKEN ? 'QUERN_TOKEN' : 'HF_TOKEN', 'in the environment is no token');
  return token;
}

/**
 * The headers of requests for a model and its projector.
 * @param {string | (string | undefined)[]} sources
 * @param {string[]} lines 'Name: value' each
 * @returns {Record<string, string> | undefined}
 */
export function headersFor(sources, lines = [], env = process.env) {
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined) throw badParam('--header', 'must be \'Name: value\', as requests have them');
    headers.append(name, value);
  }
  if (!headers.has('Authorization') && isOnHub(sources) && tokenOf(env))
    headers.set('Authorization', `Bearer ${tokenOf(env)}`);
  const all = Object.fromEntries(headers);
  return Object.keys(all).length ? all : undefined;
}

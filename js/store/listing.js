// SPDX-License-Identifier: MIT
// A Hugging Face folder on a server. It cannot be listed, so its files are requested by name; the index, if there is
// one, has the names of the files with weights. The index is read only for that: the engine checks its claims against
// the files.

import { hostOf } from '../net/answer.js';
import { nameOf, openRemote } from '../net/download.js';
import { QuernError } from '../shared/errors.js';
import {
  DESCRIPTIONS, INDEX, MODULES, POOLING, SEEING, SENTENCES, TEMPLATE, TOOLS_TEMPLATE, pathIn,
} from '../shared/folder.js';
import { othersThan } from '../shared/named.js';
import { onlyName } from './identity.js';
import { Entry } from './store.js';
import { listType } from './type-listing.js';

const WHOLE = 'model.safetensors';
const REQUIRED = ['config.json', 'tokenizer.json'];
/** Files that exist only where another file does. */
const WITH = { [TOOLS_TEMPLATE]: TEMPLATE, [POOLING]: MODULES, [SENTENCES]: MODULES };
const MOST_WEIGHTS = 900;
const MOST_BYTES = 64 << 20;     // of an index; the index of a model with 235 billion weights has 7 MB

const NOT_THERE = [404, 410];
const NOT_SHOWN = [403, ...NOT_THERE];   // statuses that servers send for files that do not exist, or perhaps not

/** A file's address; `path` is relative to the folder and encoded. */
function fileAt(folder, path) {
  const url = new URL(folder);
  url.pathname += path;
  return url.href;
}

const coded = (path) => path.split('/').map(encodeURIComponent).join('/');

/**
 * Opens a file of the folder and closes the connection until its turn comes. Returns null if the server answers with
 * one of these statuses, or if another site's server hides its 404 from the page (nginx leaves out CORS headers there):
 * then a second request fails in the same way.
 */
async function find(folder, name, statuses, options, again = true) {
  try {
    const remote = await openRemote(fileAt(folder, coded(name)), options);
    remote.close();
    return remote;
  } catch (error) {
    const isHidden = statuses === NOT_SHOWN && error.code === 'net/unreachable';
    if (isHidden && again) return find(folder, name, statuses, options, false);
    if (!isHidden && !statuses.includes(error.detail?.status)) throw error;
    return null;
  }
}

const missing = (folder, name, why) =>
  new QuernError('model/format', `There is no ${name} in the folder on ${hostOf(folder)}; ${why}.`, {
    phase: 'load',
    detail: { rule: 'missing', host: hostOf(folder), file: name },
  });

/** Finds a file that the model needs. If it is missing, the folder may belong to another program. */
async function findRequired(folder, name, why, options) {
  const remote = await find(folder, name, NOT_THERE, options);
  if (remote) return remote;
  for (const other of await othersThan(name)) if (await find(folder, other.name, NOT_SHOWN, options)) throw other.error;
  throw missing(folder, name.slice(0, 64), why);
}

const findWeights = (folder, name, options) => findRequired(folder, name,
  name === WHOLE ? 'if the model is a GGUF file, give that file\'s address' : `its ${INDEX} names it`, options);

/** Finds a file that describes the model; null if there is none. */
const findDescription = (folder, name, options) => (REQUIRED.includes(name)
  ? findRequired(folder, name, 'a Hugging Face folder has one', options) : find(folder, name, NOT_SHOWN, options));

const wrongIndex = (problem) => new QuernError('model/inconsistent', `The folder's ${INDEX} ${problem}.`,
  { phase: 'load', detail: { rule: 'index' } });

/** The files that an index names, all of them beside it. */
function namesIn(text) {
  let map;
  try {
    map = JSON.parse(text).weight_map;
  } catch {
    throw wrongIndex('is not JSON');
  }
  const values = Object.values(map ?? {});
  const other = values.find((name) => typeof name !== 'string' || !/^[^./\\:][^/\\:]*\.safetensors$/.test(name));
  if (other !== undefined)
    throw wrongIndex(`names a file that is not safetensors, or not beside it: ${JSON.stringify(other).slice(0, 64)}`);
  const names = [...new Set(values)].sort();
  if (names.length === 0 || names.length > MOST_WEIGHTS)
    throw wrongIndex(`has ${names.length} files; 1 to ${MOST_WEIGHTS} are possible`);
  return names;
}

/** @param {() => Error} tooLong makes the error for a file that is too long */
async function readText(remote, tooLong) {
  const parts = [];
  if (remote.size > MOST_BYTES) throw tooLong();
  for await (const { bytes } of remote.chunks()) {
    parts.push(bytes.slice());
    if (parts.length * remote.chunkSize > MOST_BYTES) throw tooLong();
  }
  return new Blob(parts).text();
}

/** Whether a model's description mentions vision. If it is not JSON, the engine refuses it. */
async function hasVision(config) {
  const text = await readText(
    config,
    () => new QuernError('model/format', "The folder's config.json is too long.", { phase: 'load' }),
  );
  return /"vision_config"\s*:/.test(text);
}

/** The files of a folder, in the order that the engine needs. */
async function findAll(folder, options) {
  const found = [];
  const seen = new Set();
  let names = [WHOLE];
  let sees = false;
  for (const name of DESCRIPTIONS) {
    if ((SEEING.includes(name) && !sees) || (WITH[name] && !seen.has(WITH[name]))) continue;
    const remote = await findDescription(folder, name, options);
    if (remote) found.push(remote);
    if (remote) seen.add(name);
    if (name === DESCRIPTIONS[0]) sees = await hasVision(remote);
    if (remote && name === INDEX) names = namesIn(await readText(remote, () => wrongIndex('is too long')));
  }
  for (const name of names) found.push(await findWeights(folder, name, options));
  return found;
}

/** The last part of the folder's address, or the repository's name. */
const folderName = (folder) => nameOf(folder.replace(/[?#].*$/, '').replace(/\/(?:resolve\/[^/]+\/)?$/, ''), null);

/**
 * Addresses of the files of a complete stored copy, from its journal, in which the first file has the folder's own
 * address.
 */
async function storedFiles({ folder, id }, options) {
  const entry = options.store && (await Entry.open(options.store, id, options).catch(() => null));
  return entry?.complete
    ? entry.header.files.map(({ url }, i) => fileAt(folder, i ? pathIn(url) : DESCRIPTIONS[0]))
    : null;
}

/**
 * The files of a folder, or of one type in it: those of a complete stored copy, which needs no server, or those on the
 * server now.
 * @param {{folder: string, id: string}} source the address; its path ends with a slash
 * @param {object} options of `openParts`
 * @returns {Promise<{urls: string[], id: string, name: string, found?: object[]}>} `found`: the files, opened
 */
export async function listFolder(source, options) {
  if (source.type) return listType(source, options);
  const { id, folder, isName } = source;
  const urls = await storedFiles(source, options);
  if (!urls && isName) throw onlyName();
  const found = urls ? undefined : await findAll(folder, options);
  return { id, isName, name: folderName(folder), urls: urls ?? found.map(({ url }) => url), found };
}

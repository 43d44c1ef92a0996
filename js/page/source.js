// SPDX-License-Identifier: MIT
// Converts a source given by the caller to the files that the worker opens: {kind: 'urls', urls, id?}, {kind: 'blobs',
// blobs} or {kind: 'paths', paths}, the files of a split model in order. A folder on a server is {kind: 'urls', urls:
// [], folder, id?}, which the worker looks into. `type` selects files of this type in the `list` of a repository. If
// the name of a stored model was given instead of its address (identity.js), `id` is that name and `isName` is true.
// `names` are the paths of blobs that are files of a folder. This runs on the page, so that mistakes are reported
// before anything starts.

import { badParam } from '../shared/errors.js';
import { modelOf, pathOf } from '../shared/folder.js';
import { HUB, fileOfPage, hubList, hubUrl } from '../net/hub.js';
import { isRecord } from '../shared/kinds.js';
import { isName } from '../store/identity.js';
import { isPlain } from './values.js';

const SPLIT = /-(\d{5})-of-(\d{5})(\.gguf)$/i;
const MOST_PARTS = 1000;

const five = (n) => String(n).padStart(5, '0');
const shorten = (text) => (text.length > 80 ? `…${text.slice(-79)}` : text);

/** The number of a part and the number of parts, from its name; null for a file that is not split. */
function partOf(name) {
  const [, no, of] = SPLIT.exec(name) ?? [];
  return no === undefined ? null : { no: Number(no), of: Number(of) };
}

/** Names of all parts of a split file, from the name of the first; other files have one part. */
function partsOf(name, param) {
  const part = partOf(name);
  if (!part) return [name];
  const { no, of } = part;
  const nameOf = (i) => name.replace(SPLIT, (_, __, total, ending) => `-${five(i)}-of-${total}${ending}`);
  if (of < 1 || of > MOST_PARTS || no < 1 || no > of)
    throw badParam(param, `names the impossible part ${no} of ${of}: '${shorten(name)}'`);
  if (no !== 1)
    throw badParam(param, `is part ${no} of ${of} of a model; name its first part, '${shorten(nameOf(1))}'`);
  return Array.from({ length: of }, (_, i) => nameOf(i + 1));
}

// --- addresses ---

/** The same address with another path. */
function withPath(url, path) {
  const copy = new URL(url);
  copy.pathname = path;
  return copy.href;
}

function urls(url, param) {
  const file = new URL(fileOfPage(url));
  if (!/^https?:$/.test(file.protocol)) return { kind: 'urls', urls: [file.href] };
  if (file.username || file.password) {
    throw badParam(
      param,
      'must not have a user name or password in its address; pass options.headers: { Authorization }',
    );
  }
  const name = isName(file.href) && { id: file.href, isName: true };
  file.hash = '';
  if (file.pathname.endsWith('/')) return { kind: 'urls', urls: [], folder: file.href, ...name };
  return { kind: 'urls', urls: partsOf(file.pathname, param).map((path) => withPath(file, path)), ...name };
}

// --- repositories ---

const words = (value) => typeof value === 'string' && value.trim() !== '' && !/\p{Cc}/u.test(value);

/** A segment of a path that cannot be a name: '', '.' or '..'. */
const isDots = (part) => /^\.{0,2}$/.test(part);

const isEndpoint = (value) => {
  try {
    return typeof value === 'string' && /^https?:$/.test(new URL(value).protocol) && !/[?#]/.test(value);
  } catch {
    return false;
  }
};

/** For each field: its check, and the problem of a wrong value. */
const FIELDS = {
  repo: [
    (value) => words(value) && /^[\w.-]+(?:\/[\w.-]+)?$/.test(value) && !value.split('/').some(isDots),
    "must be a repository such as 'Qwen/Qwen3-0.6B-GGUF'",
  ],
  file: [
    (value) => value === undefined || (words(value) && !value.split('/').some(isDots)),
    'must be the name of a file in the repository',
  ],
  revision: [
    (value) => words(value) && !value.split('/').some(isDots),
    'must be the name of a branch or tag, or a commit',
  ],
  type: [(value) => value === undefined || /^\w[\w.-]{0,63}$/.test(value), "must be the name of a type such as 'Q8_0'"],
  endpoint: [isEndpoint, "must be the address of a server such as 'https://huggingface.co', without ? and #"],
};

function repository(source) {
  const fields = { revision: 'main', endpoint: HUB, ...source };
  for (const name of Object.keys(fields)) {
    if (!Object.hasOwn(FIELDS, name)) {
      throw badParam(
        `source.${name.slice(0, 64)}`,
        'is not a field here; a repository is { repo, file, type, revision, endpoint }',
      );
    }
  }
  for (const [name, [isGood, problem]] of Object.entries(FIELDS))
    if (!isGood(fields[name])) throw badParam(`source.${name}`, problem);
  const located = urls(hubUrl(fields), 'source.file');
  if (!fields.type) return located;
  if (fields.file) throw badParam('source.type', 'must be left out where a file is named');
  return { ...located, type: fields.type, list: hubList(fields) };
}

/** `hf:OWNER/REPO[:TYPE][/FILE][@REVISION]`. */
const SHORT = /^hf:([^/@:]+\/[^/@:]+)(?::([^/@]*))?(?:\/([^@]*))?(?:@(.*))?$/i;

function abbreviated(text) {
  const [, repo, type, file, revision] = SHORT.exec(text) ?? [];
  if (!repo)
    throw badParam(
      'source',
      `must be hf:OWNER/REPO, hf:OWNER/REPO/FILE or hf:OWNER/REPO:TYPE (@REVISION), not '${shorten(text)}'`,
    );
  return repository({
    repo,
    ...(type !== undefined && { type }),
    ...(file && { file }),
    ...(revision !== undefined && { revision }),
  });
}

// --- files that were picked ---

function checkSplit(blobs, numbers) {
  const { of } = numbers[0];
  const base = (blob) => blob.name.replace(SPLIT, '');
  if (numbers.some((part) => part.of !== of) || blobs.some((blob) => base(blob) !== base(blobs[0]))) {
    throw badParam('source', 'has parts of different models');
  }
  for (let no = 1; no <= of; no++) {
    const found = numbers.filter((part) => part.no === no).length;
    if (found !== 1) {
      const lacks = `lacks part ${no} of ${of} of the model; choose all its files together`;
      throw badParam('source', found ? `has part ${no} of ${of} ${found} times` : lacks);
    }
  }
  if (numbers.length !== of) throw badParam('source', `has ${numbers.length} parts of a model of ${of}`);
}

/** Sorts picked files by their numbers, or as the files of a folder. Blobs without names stay in the given order. */
function blobs(list) {
  const names = list.every(({ name }) => typeof name === 'string') ? list.map(pathOf) : [];
  const folder = modelOf(names);
  if (folder) return { kind: 'blobs', blobs: folder.map((i) => list[i]), names: folder.map((i) => names[i]) };
  const numbers = list.map(({ name }) => (typeof name === 'string' ? partOf(name) : null));
  if (numbers.every((part) => part === null)) {
    if (list.length > 1 && list.some(({ name }) => name !== undefined)) {
      throw badParam(
        'source',
        'has several files that are not parts of one split model (…-00001-of-00003.gguf), nor a folder with safetensors files',
      );
    }
    return { kind: 'blobs', blobs: [...list] };
  }
  const at = numbers.indexOf(null);
  if (at >= 0) throw badParam(`source[${at}]`, 'is not a part of the split model that the other files are of');
  checkSplit(list, numbers);
  const order = new Map(list.map((blob, i) => [blob, numbers[i].no]));
  return { kind: 'blobs', blobs: [...list].sort((a, b) => order.get(a) - order.get(b)) };
}

/**
 * Adds a located projector to a located model: at the end of one list if both are of one kind (the last `projectors`
 * files are then not part of the language model), else as a source `beside` the model.
 */
export function withProjector(model, projector) {
  const { kind } = projector;
  if (projector.folder || projector[kind].length !== 1)
    throw badParam('options.vision', "must be one file, the model's projector (mmproj-….gguf)");
  if (model.folder || model.kind !== kind) return { ...model, beside: projector };
  return { ...model, [kind]: [...model[kind], ...projector[kind]], projectors: 1 };
}

/** Reports errors in locating the projector as errors of the option instead of the source. */
export function asOption(locating) {
  try {
    return locating();
  } catch (error) {
    if (!error.detail?.param?.startsWith('source')) throw error;
    throw badParam(
      error.detail.param.replace('source', 'options.vision'),
      error.message.replace(/^\S+ /, '').replace(/\.$/, ''),
    );
  }
}

/** Converts a list of files to an array, since a page's FileList is none. @param {any} source */
const listed = (source) =>
  typeof source === 'object' && typeof source?.item === 'function' ? Array.from(source) : source;

/** Names of the files of a source, as far as they are known. @param {any} source */
export function namesOf(source) {
  const all = [listed(source)].flat();
  if (all.every((file) => file instanceof Blob)) return all.map((file) => pathOf(file) ?? '');
  const name = source?.file ?? source;
  return typeof name === 'string' || name instanceof URL ? [String(name).replace(/[?#].*$/s, '')] : [];
}

/**
 * @param {unknown} given as passed to `load`
 * @param {(text: string) => {url: string} | {path: string}} resolve converts a string to an absolute address, or in
 *   Node to a path
 * @returns {{kind: 'urls', urls: string[], id?: string, folder?: string, type?: string, list?: string}
 *   | {kind: 'blobs', blobs: Blob[], names?: string[]} | {kind: 'paths', paths: string[]}}
 */
export function locate(given, resolve) {
  const source = listed(given);
  if (source instanceof Blob) return blobs([source]);
  if (Array.isArray(source) && source.length > 0) {
    const at = source.findIndex((part) => !(part instanceof Blob));
    if (at >= 0)
      throw badParam(
        `source[${at}]`,
        'must be a File or a Blob; of a split model elsewhere name the first part, without an array',
      );
    return blobs(source);
  }
  if (typeof source === 'string' || source instanceof URL) {
    const text = String(source);
    if (text === '') throw badParam('source', 'must not be empty');
    if (/^hf:/i.test(text)) return abbreviated(text);
    const { url, path } = resolve(text);
    return url === undefined ? { kind: 'paths', paths: partsOf(path, 'source') } : urls(url, 'source');
  }
  if (isRecord(source) && isPlain(source) && 'repo' in source) return repository(source);
  throw badParam('source', 'must be a URL, a path (in Node), a File or Blob, an array of them, or { repo, file }');
}

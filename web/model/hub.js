// SPDX-License-Identifier: MIT
// The GGUF files of a repository on Hugging Face, with the sizes and checksums that its public API lists. It is asked
// only when a visitor presses Load.
import { accessFor } from './access.js';

const HUB = 'https://huggingface.co';

const SPLIT = /-(\d{5})-of-\d{5}(?=\.gguf$)/i;

/** Whether a name is a language model's: not a projector's, nor that of draft blocks alone. */
const isModel = (name) => /\.gguf$/i.test(name) && !/mmproj|(?:^|\/)mtp-/i.test(name);

const addressOf = ({ repo, revision }, file) =>
  `${HUB}/${repo}/resolve/${encodeURIComponent(revision)}/${file.split('/').map(encodeURIComponent).join('/')}`;

/** @param {{rfilename?: string, size?: number, lfs?: {sha256?: string, size?: number}}} entry of the list */
const fileOf = ({ rfilename, size, lfs }) => ({
  name: String(rfilename),
  size: Number(lfs?.size ?? size) || 0,
  sha256: /^[0-9a-f]{64}$/.test(lfs?.sha256) ? lfs.sha256 : undefined,
});

/** Joins the parts of split models; their checksums are those of parts, and left out. */
function joined(files) {
  const models = new Map();
  for (const file of files) {
    const key = file.name.replace(SPLIT, '');
    const first = models.get(key);
    if (first) models.set(key, { ...first, size: first.size + file.size, sha256: undefined });
    else models.set(key, file);
  }
  return [...models.values()];
}

/**
 * @param {{repo: string, revision: string, type?: string, folder?: string}} wanted
 * @returns {Promise<{name: string, url: string, size: number, sha256?: string}[]>} the smallest first; rejects if the
 *   server does not list them
 */
export async function listFiles(wanted) {
  const { repo, revision, type, folder = '' } = wanted;
  const list = `${HUB}/api/models/${repo}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const answer = await fetch(list, accessFor(list));
  const { siblings } = await answer.json();
  const isMeant = new RegExp(`(?:^|[-._/])${type?.replaceAll(/\W/g, '\\$&')}(?=[-./])`, 'i');
  const found = siblings
    .map(fileOf)
    .filter(({ name }) => isModel(name) && name.startsWith(folder) && (!type || isMeant.test(name)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return joined(found)
    .map((file) => ({ ...file, url: addressOf(wanted, file.name) }))
    .sort((a, b) => a.size - b.size);
}

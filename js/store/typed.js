// SPDX-License-Identifier: MIT
// Finds a GGUF file of a repository by its type (`hf:OWNER/REPO:Q8_0`). The model is stored under the address of its
// file, as if that had been named, so a stored model is found without a server, whichever way it was named first.

import { Entry } from './store.js';

const SPLIT = /-\d{5}-of-\d{5}(?=\.gguf$)/i;

const whole = (path) => path.replace(SPLIT, '');

/** Whether the name is that of a language model, not of a projector or of a model's draft blocks alone. @param {string} path */
export const isModel = (path) => /\.gguf$/i.test(path) && !/mmproj|(?:^|\/)mtp-/i.test(path);

/** The files of a type: of the names that contain it, the shortest one, with all its parts. @param {string[]} paths */
export function filesOfType(paths, type) {
  const isMeant = new RegExp(`(?:^|[-._/])${type.replaceAll('.', '\\.')}(?=[-./])`, 'i');
  const found = paths.filter((path) => isModel(path) && isMeant.test(path));
  const [name] = found.map(whole).sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  return found.filter((path) => whole(path) === name).sort();
}

/** The stored model of this type; complete models come first. @returns {Promise<Entry | undefined>} */
export async function storedOfType(store, { folder, type }) {
  const pathOf = ({ header: { id } }) => (id.startsWith(folder) ? decodeURIComponent(id.slice(folder.length)) : '');
  const entries = (await Entry.all(store)).filter((entry) => filesOfType([pathOf(entry)], type).length > 0);
  return entries.find(({ complete }) => complete) ?? entries[0];
}

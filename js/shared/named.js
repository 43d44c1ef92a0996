// SPDX-License-Identifier: MIT
// Explains a failed load by the names of its files: most sources that cannot be loaded are models of other programs, or
// pieces of files. The code for that (foreign.js) is fetched only then; without it the error stays as it is.

import { QuernError, isOf } from './errors.js';

const foreign = () => import('./foreign.js');

/** Makes the error for a foreign model. Its message tells what to do, so it has no hint. */
export const refusal = ({ rule, message }, cause) => (
  new QuernError('model/unsupported', message, { phase: 'load', detail: { rule }, cause, hint: '' }));

/**
 * @param {any} error of a load
 * @param {string[]} names of its files
 * @param {any} source as given
 * @returns {Promise<any>} the error to throw
 */
export async function named(error, names, source) {
  const { param, status } = error?.detail ?? {};
  if (!isOf('model', error) && param !== 'source' && status !== 404) return error;
  const { foreignOf, repositoryOf } = await foreign().catch(() => ({}));
  const words = repositoryOf?.(source);
  if (words) return new QuernError(error.code, `${error.message} ${words}`, error);
  const found = status ? null : foreignOf?.(names);
  return found ? refusal(found, error) : error;
}

/**
 * Files that a server may have in place of a missing file of a model.
 * @param {string} missing
 * @returns {Promise<{name: string, error: Error}[]>}
 */
export async function othersThan(missing) {
  const kinds = await foreign().then(({ foreignTo }) => foreignTo(missing), () => []);
  return kinds.map(({ name, ...kind }) => ({ name, error: refusal(kind) }));
}

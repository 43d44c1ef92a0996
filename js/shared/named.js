// SPDX-License-Identifier: MIT
// A load that failed, explained by the names of its files: most of what people try and cannot load is another
// program's, or a piece of a file. The words for that (foreign.js) are fetched then only; without them the failure
// stays what it is.

import { QuernError, isOf } from './errors.js';

const foreign = () => import('./foreign.js');

/** Its message says what to do. */
export const refusal = ({ rule, message }, cause) => (
  new QuernError('model/unsupported', message, { phase: 'load', detail: { rule }, cause, hint: '' }));

/**
 * @param {any} error of a load
 * @param {string[]} names of its files
 * @param {any} source as it was given
 * @returns {Promise<any>} what to throw
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
 * What a server may have where a file of a model is missing.
 * @param {string} missing
 * @returns {Promise<{name: string, error: Error}[]>}
 */
export async function othersThan(missing) {
  const kinds = await foreign().then(({ foreignTo }) => foreignTo(missing), () => []);
  return kinds.map(({ name, ...kind }) => ({ name, error: refusal(kind) }));
}

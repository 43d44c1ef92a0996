// SPDX-License-Identifier: MIT
// A load that failed, explained by the names of its files: most of what people try and cannot load is another program's, or a piece of a file. The
// words for that (foreign.js) are fetched then only; without them the failure stays what it is.

import { QuernError, isOf } from './errors.js';

const foreign = () => import('./foreign.js');

export const refusal = ({ rule, message }, cause) => new QuernError('model/unsupported', message, { phase: 'load', detail: { rule }, cause });

/** `OWNER/REPO`, with a file or a type behind it; no path of a file that is only missing. */
const REPOSITORY = /^[\w-][\w.-]*\/[\w.-]+(?:\/.+|:[\w.-]+)?$/;
const isRepository = (source) => REPOSITORY.test(source) && !/^[^/]*\/[^/]*\.(?:gguf|safetensors|json|bin|tokenizer)$/i.test(source);

function asRepository(error, source) {
  const message = `${error.message} If this is a repository of Hugging Face, write 'hf:${source.slice(0, 200)}'.`;
  return new QuernError(error.code, message, error);
}

/** @param {any} error of a load @param {string[]} names of its files @param {any} source as it was given @returns {Promise<any>} what to throw */
export async function named(error, names, source) {
  const { param, status } = error?.detail ?? {};
  if (!isOf('model', error) && param !== 'source' && status !== 404) return error;
  if (typeof source === 'string' && isRepository(source)) return asRepository(error, source);
  if (status) return error;
  const found = await foreign().then(({ foreignOf }) => foreignOf(names), () => null);
  return found ? refusal(found, error) : error;
}

/** What a server may have where a file of a model is missing. @param {string} missing @returns {Promise<{name: string, error: Error}[]>} */
export async function othersThan(missing) {
  const kinds = await foreign().then(({ foreignTo }) => foreignTo(missing), () => []);
  return kinds.map(({ name, ...kind }) => ({ name, error: refusal(kind) }));
}

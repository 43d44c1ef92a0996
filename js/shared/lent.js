// SPDX-License-Identifier: MIT
// Files of the package that come later are functions of what they share with the file that loads them, which would else
// be in both (tools/build.mjs). As sources they are modules, and import the same.

import { QuernError } from './errors.js';

/**
 * What such a file has to give.
 * @param {object} lent what it shares with who loads it, by name
 * @returns {<T>(module: T & {open?: (lent: object) => T}) => T}
 */
export const lending = (lent) => (module) => module.open?.(lent) ?? module;

/** What is said where one could not be fetched. @param {string} [phase] @returns {(cause: Error) => never} */
export const notFetched = (phase) => (cause) => {
  throw new QuernError('env/worker', `A part of the package could not be fetched (${cause.message}).`, {
    phase,
    cause,
  });
};

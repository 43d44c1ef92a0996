// SPDX-License-Identifier: MIT
// Files of the package that are loaded later are functions of the modules that they share with the file that loads
// them; otherwise both would contain these (tools/build.mjs). As sources they are modules, and import them as usual.

import { QuernError } from './errors.js';

/**
 * Opens such a file.
 * @param {object} lent the shared modules, by name
 * @returns {<T>(module: T & {open?: (lent: object) => T}) => T}
 */
export const lending = (lent) => (module) => module.open?.(lent) ?? module;

/** Reports that such a file could not be fetched. @param {string} [phase] @returns {(cause: Error) => never} */
export const notFetched = (phase) => (cause) => {
  throw new QuernError('env/worker', `A part of the package could not be fetched (${cause.message}).`, {
    phase,
    cause,
  });
};

// SPDX-License-Identifier: MIT
// Files of the package that come later are functions of what they share with the file that loads them, which would else be in both
// (tools/build.mjs). As sources they are modules, and import the same.

/**
 * What such a file has to give.
 * @param {object} lent what it shares with who loads it, by name
 * @returns {<T>(module: T & {open?: (lent: object) => T}) => T}
 */
export const lending = (lent) => (module) => module.open?.(lent) ?? module;

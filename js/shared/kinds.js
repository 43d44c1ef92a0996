// SPDX-License-Identifier: MIT
// What kind of thing a value is.

/** Whether it has fields, or is a list; null is neither. */
export const isObject = (value) => typeof value === 'object' && value !== null;

/** Whether it has fields and is no list. */
export const isRecord = (value) => isObject(value) && !Array.isArray(value);

// SPDX-License-Identifier: MIT
// Tests for kinds of values.

/** Whether a value is an object or an array, not null. */
export const isObject = (value) => typeof value === 'object' && value !== null;

/** Whether a value is an object that is not an array. */
export const isRecord = (value) => isObject(value) && !Array.isArray(value);

// SPDX-License-Identifier: MIT
// Errors of public calls. An error may have come from the worker by a message, with a stack that does not show the
// caller: it gets the stack of the call. An error about an unknown name also tells the right name; the code for that is
// fetched only then (foreign.js).

import { QuernError } from './errors.js';

const foreign = () => import('./foreign.js');

/** @param {QuernError} error @returns {Promise<QuernError>} */
async function explained(error) {
  const { param, known } = error.detail;
  const words = await foreign().then(({ oursFor }) => oursFor(param, known), () => '');
  return words ? new QuernError(error.code, `${error.message.replace(/\.$/, '')}: ${words}.`, error) : error;
}

/** Prepares an error for the caller. @param {any} error @param {Error} here made at the call */
export async function leaving(error, here) {
  if (!(error instanceof QuernError)) return error;
  const said = error.detail?.known ? await explained(error) : error;
  said.stack = here.stack?.replace(/^Error\n/, () => `${said}\n`);
  return said;
}

/** Wraps a function so that its errors are prepared for the caller. */
export const called = (work) => async function call(...given) {
  const here = new Error();
  try {
    return await Reflect.apply(work, this, given);
  } catch (error) {
    throw await leaving(error, here);
  }
};

/** Wraps methods in the same way. @param {object} prototype @param {string[]} names */
export function callable(prototype, names) {
  for (const name of names) prototype[name] = called(prototype[name]);
}

// SPDX-License-Identifier: MIT
// How a public call fails. Its error may have come by a message from the worker, with a stack that says nothing of who
// called: it gets the call's. A name that is another program's, or misspelt, gets the words that say ours, which are
// fetched then only (foreign.js).

import { QuernError } from './errors.js';

const foreign = () => import('./foreign.js');

/** @param {QuernError} error @returns {Promise<QuernError>} */
async function explained(error) {
  const { param, known } = error.detail;
  const words = await foreign().then(({ oursFor }) => oursFor(param, known), () => '');
  return words ? new QuernError(error.code, `${error.message.replace(/\.$/, '')}: ${words}.`, error) : error;
}

/** An error on its way to the caller. @param {any} error @param {Error} here made at the call */
export async function leaving(error, here) {
  if (!(error instanceof QuernError)) return error;
  const said = error.detail?.known ? await explained(error) : error;
  said.stack = here.stack?.replace(/^Error\n/, () => `${said}\n`);
  return said;
}

/** A function that fails so. */
export const called = (work) => async function call(...given) {
  const here = new Error();
  try {
    return await Reflect.apply(work, this, given);
  } catch (error) {
    throw await leaving(error, here);
  }
};

/** Has methods fail so. @param {object} prototype @param {string[]} names */
export function callable(prototype, names) {
  for (const name of names) prototype[name] = called(prototype[name]);
}

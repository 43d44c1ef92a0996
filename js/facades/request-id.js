// SPDX-License-Identifier: MIT
// The id of a request in answers and logs: the one sent by the client, or a new one.

import { randomId } from '../shared/random-id.js';

export const REQUEST_ID = 'x-request-id';

const FINE = /^[\x21-\x7e]{1,128}$/;

/** @param {string | string[] | null} [given] */
export function requestId(given) {
  if (typeof given === 'string' && FINE.test(given)) return given;
  return `req_${randomId()}`;
}

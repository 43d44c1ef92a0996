// SPDX-License-Identifier: MIT
// How many tokens the prompt of a request would have, for APIs that ask so by the request itself: Anthropic's count_tokens, and input_tokens of
// responses.

import { messagesRequest } from '../facades/messages-request.js';
import { responsesRequest } from '../facades/responses-request.js';
import { Reader } from '../facades/responses-store.js';
import { badParam } from '../shared/errors.js';

/** The longest conversation to count, in letters: it is one piece of work, for which replies wait. */
const MOST = 2 ** 20;

async function countOf(served, { messages, options }, field) {
  const { thinking, tools, continue: goesOn } = options;
  if (JSON.stringify([messages, tools]).length > MOST) throw badParam(field, `are longer than ${MOST} letters`);
  return (await served.tokenize(messages, { thinking, tools, continue: goesOn })).length;
}

/**
 * By path and method.
 * @param {(site: any, name: unknown) => void} checkName refuses a model that is not there
 * @param {(site: any, scope: number) => import('../facades/responses-store.js').Shelf} shelfOf
 */
export const countRoutes = (checkName, shelfOf) => ({
  '/messages/count_tokens': { POST: async (site, body) => {
    checkName(site, body?.model);
    return { json: { input_tokens: await countOf(site.served, messagesRequest(body), 'messages') } };
  } },
  '/responses/input_tokens': { POST: async (site, body, scope) => {
    checkName(site, body?.model);
    const request = responsesRequest(body, new Reader(shelfOf(site, scope)));
    return { json: { object: 'response.input_tokens', input_tokens: await countOf(site.served, request, 'input') } };
  } },
});

// SPDX-License-Identifier: MIT
// The caller's headers are meant for the server that the caller named. On a redirect to another origin fetch() removes
// Authorization and Cookie, but passes on everything else, such as an API key under any name. So if there are such
// headers, redirects are followed here, without them. A page cannot do that, since it is not told the target; there the
// caller must allow it.

import { badParam } from '../shared/errors.js';

const REDIRECTS = [301, 302, 303, 307, 308];
const MOST = 20;

/** fetch() itself protects these. */
const isGuarded = (name) => ['authorization', 'cookie'].includes(name.toLowerCase());

async function follow(fetch, url, own, callers, options) {
  let at = url;
  let headers = { ...callers, ...own };
  for (let n = 0; n <= MOST; n++) {
    const response = await fetch(at, { ...options, headers, redirect: 'manual' });
    if (response.type === 'opaqueredirect') {
      throw badParam(
        'options.headers',
        `would go to an unknown server, to which ${new URL(url).host} redirects; pass forwardHeaders: true to allow that`,
      );
    }
    const to = REDIRECTS.includes(response.status) && response.headers.get('Location');
    if (!to) return response;
    response.body?.cancel().catch(() => {});
    const next = new URL(to, at);
    if (!/^https?:$/.test(next.protocol)) throw new TypeError(`a redirect to ${next.protocol}`);
    if (next.origin !== new URL(at).origin) headers = own;
    at = next.href;
  }
  throw new TypeError('too many redirects');
}

/**
 * @param {Function} fetch
 * @param {string} url
 * @param {object} own headers that any server may see
 * @param {Headers} callers
 * @param {boolean} forward whether the caller's headers may go to other origins
 * @param {object} options of fetch
 * @returns {Promise<Response>}
 */
export function fetchFor(fetch, url, own, callers, forward, options) {
  const theirs = Object.fromEntries(callers);
  if (forward || Object.keys(theirs).every(isGuarded))
    return fetch(url, { ...options, headers: { ...theirs, ...own } });
  return follow(fetch, url, own, theirs, options);
}

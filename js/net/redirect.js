// SPDX-License-Identifier: MIT
// The caller's headers are for the server that he named. fetch() itself keeps Authorization and Cookie from another
// origin that this server redirects to, and hands on everything else: an API key of whatever name. So where there are
// such headers redirects are followed here, without them. A page cannot do that, since it is not told where to; there
// the caller must allow it.

import { badParam } from '../shared/errors.js';

const REDIRECTS = [301, 302, 303, 307, 308];
const MOST = 20;

/** Of these fetch() takes care. */
const isGuarded = (name) => ['authorization', 'cookie'].includes(name.toLowerCase());

async function follow(fetch, url, own, callers, options) {
  let at = url;
  let headers = { ...callers, ...own };
  for (let n = 0; n <= MOST; n++) {
    const response = await fetch(at, { ...options, headers, redirect: 'manual' });
    if (response.type === 'opaqueredirect') {
      throw badParam(
        'options.headers',
        `would go on to wherever ${new URL(url).host} redirects, which a page is not told; pass forwardHeaders: true if they may`,
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
 * @param {Function} fetch @param {string} url
 * @param {object} own headers that any server may see @param {Headers} callers
 * @param {boolean} forward whether the caller's may go to other origins @param {object} options of fetch
 * @returns {Promise<Response>}
 */
export function fetchFor(fetch, url, own, callers, forward, options) {
  const theirs = Object.fromEntries(callers);
  if (forward || Object.keys(theirs).every(isGuarded))
    return fetch(url, { ...options, headers: { ...theirs, ...own } });
  return follow(fetch, url, own, theirs, options);
}

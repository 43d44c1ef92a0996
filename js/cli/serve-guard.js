// SPDX-License-Identifier: MIT
// Who may ask: whom a request is meant for (Host), which page sent it (Origin), and whether it has a key. A page
// anywhere can make a browser send requests to 127.0.0.1, and by a name of its own that leads there it can read the
// answers: so names are checked before anything else.

import { createHash, timingSafeEqual } from 'node:crypto';
import { REQUEST_ID } from '../facades/request-id.js';
import { refusal } from './serve-refusal.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const digest = (text) => createHash('sha256').update(text).digest();

/** Without its port, in small letters; '' where it is none. */
function hostName(host) {
  return /^(\[[\da-f:.]+\]|[a-z\d._-]+)(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1] ?? '';
}

/** An address as a Host has it. */
const asHost = (address) =>
  (address?.includes(':') ? `[${address}]` : (address ?? '')).replace(/^\[::ffff:([\d.]+)\]$/, '$1');

export const isLoopback = (name) => LOOPBACK.test(asHost(name.toLowerCase()));

/** What a key is sent as: `Authorization: Bearer KEY`, or `X-Api-Key: KEY`. */
function keyIn({ authorization = '', 'x-api-key': key }) {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? key ?? '';
}

export class Guard {
  #hosts;
  #origins;
  #keys;

  /** @param {{host: string, allowHosts?: string[], corsOrigins?: string[], keys?: string[]}} options */
  constructor({ host, allowHosts = [], corsOrigins = [], keys = [] }) {
    this.#hosts = new Set([host, ...allowHosts].map((name) => asHost(name.toLowerCase())));
    this.#origins = new Set(corsOrigins);
    this.#keys = keys.map(digest);
  }

  /** Whether a request names this machine: where all addresses are listened on, also the one that it came to. */
  knowsHost({ headersDistinct, socket }) {
    const { host = [] } = headersDistinct;
    const name = host.length === 1 ? hostName(host[0]) : '';
    return name !== '' && (LOOPBACK.test(name) || this.#hosts.has(name) || name === asHost(socket.localAddress));
  }

  /** The page's origin that sent it; '' where it was none; null: a page that may not. */
  originOf({ headers: { origin } }) {
    if (origin === undefined) return '';
    return this.#origins.has(origin) ? origin : null;
  }

  /**
   * Which key a request has: from 1 on, 0 where none is needed, -1: none of them. All are compared, each in the same
   * time.
   */
  keyOf({ headers }) {
    const given = digest(keyIn(headers));
    const same = this.#keys.map((key) => timingSafeEqual(key, given));
    if (same.length === 0) return 0;
    return same.includes(true) ? same.indexOf(true) + 1 : -1;
  }
}

/**
 * What a page asks before its request, answered; what it may read of an answer. Pages that are not named get nothing,
 * and no header that would help.
 * @param {Guard} guard @returns {boolean} whether it was that
 */
export function isPreflight(guard, request, response) {
  const origin = guard.originOf(request);
  if (origin === null) throw refusal(403, 'Pages of this origin may not ask; --cors-origin allows them.');
  if (!origin) return false;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', `Retry-After, x-should-retry, ${REQUEST_ID}`);
  response.setHeader('Vary', 'Origin');
  if (request.method !== 'OPTIONS') return false;
  const wanted = request.headers['access-control-request-headers'] ?? '';
  response.writeHead(204, {
    'Access-Control-Allow-Methods': 'GET, POST, DELETE', 'Access-Control-Max-Age': '600',
    'Access-Control-Allow-Headers': /^[\w-]+(?:, *[\w-]+)*$/.test(wanted) ? wanted : 'authorization, content-type',
  }).end();
  return true;
}

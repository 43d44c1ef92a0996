// SPDX-License-Identifier: MIT
// Decides who may send requests: checks the host that a request names (Host), the page that sent it (Origin), and its
// key. Any web page can make a browser send requests to 127.0.0.1, and with a host name of its own that leads there it
// can read the answers. So the host is checked before anything else.

import { createHash, timingSafeEqual } from 'node:crypto';
import { REQUEST_ID } from '../facades/request-id.js';
import { refusal } from './serve-refusal.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const digest = (text) => createHash('sha256').update(text).digest();

/** The host name without its port, in lower case; '' if it is invalid. */
function hostName(host) {
  return /^(\[[\da-f:.]+\]|[a-z\d._-]+)(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1] ?? '';
}

/** An address in the form of a Host header. */
const asHost = (address) =>
  (address?.includes(':') ? `[${address}]` : (address ?? '')).replace(/^\[::ffff:([\d.]+)\]$/, '$1');

export const isLoopback = (name) => LOOPBACK.test(asHost(name.toLowerCase()));

/** The key of a request: `Authorization: Bearer KEY`, or `X-Api-Key: KEY`. */
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

  /** Whether the Host header names this machine. The address that the request arrived at counts too. */
  knowsHost({ headersDistinct, socket }) {
    const { host = [] } = headersDistinct;
    const name = host.length === 1 ? hostName(host[0]) : '';
    return name !== '' && (LOOPBACK.test(name) || this.#hosts.has(name) || name === asHost(socket.localAddress));
  }

  /** The origin of the page that sent the request; '': no page sent it; null: the page may not. */
  originOf({ headers: { origin } }) {
    if (origin === undefined) return '';
    return this.#origins.has(origin) ? origin : null;
  }

  /**
   * Number of the request's key, from 1 on; 0: no key is needed; -1: wrong key. All keys are compared, in constant
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
 * Answers a preflight request, and sets the headers that let a page read the answer. Pages of other origins are
 * refused, without any such header.
 * @param {Guard} guard @returns {boolean} whether it was a preflight request
 */
export function isPreflight(guard, request, response) {
  const origin = guard.originOf(request);
  if (origin === null) throw refusal(403, 'Pages of this origin may not send requests; --cors-origin allows them.');
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

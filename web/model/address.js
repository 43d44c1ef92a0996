// SPDX-License-Identifier: MIT
// Reads what a visitor types as the address of a model, and checks whether the page may fetch it (its
// Content-Security-Policy).
import { oneLine } from '../shell/format.js';

const isAllowed = ({ protocol, hostname, origin }) =>
  protocol === 'https:' || ['localhost', '127.0.0.1'].includes(hostname) || origin === location.origin;

/** @returns {{url: string, problem: string}} the whole address, or a sentence about the problem */
export function readAddress(text) {
  const typed = text.trim();
  const withoutScheme = /^[\w-]+(\.[\w-]+)+(:\d+)?\//.test(typed);
  const whole = withoutScheme ? `https://${typed}` : typed;
  const base = /^\.{0,2}\//.test(whole) ? document.baseURI : undefined;
  const url = URL.canParse(whole, base) ? new URL(whole, base) : null;
  if (!url || !/^https?:$/.test(url.protocol))
    return { url: '', problem: 'That is no address yet. It begins with https://' };
  if (!isAllowed(url)) {
    return {
      url: '',
      problem: 'Only addresses with https:// can be fetched; http:// is for a server on this device (localhost).',
    };
  }
  return { url: url.href, problem: '' };
}

/** The last part of an address, as a name for the model. */
export function labelOf(url) {
  const name = new URL(url).pathname.split('/').pop();
  let readable = name;
  try {
    readable = decodeURIComponent(name);
  } catch {
    // Not UTF-8: shown as it stands.
  }
  return oneLine(readable.replace(/\.gguf$/i, ''), 60) || 'Model';
}

/** An address without its query, since signatures and tokens must not be stored. */
export const place = (url) => url.split(/[?#]/)[0];

// SPDX-License-Identifier: MIT
// Reads what a visitor types as the address of a model, and checks whether the page may fetch it (its
// Content-Security-Policy).
import { oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';

const HUB = 'https://huggingface.co';

/** `hf:OWNER/REPO`, `OWNER/REPO`, each with `:TYPE` or `/FILE` and `@REVISION`, if the first part is no server. */
const SHORT = /^(?:hf:)?([\w-][\w.-]*\/[\w.-]+)(?::([\w.-]+))?(?:\/([^@]+))?(?:@([^/]+))?$/i;

/** The page of a repository, or of a folder in it. */
const PAGE = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/([\w.-]+\/[\w.-]+)\/?(?:tree\/([^/?#]+)\/?([^?#]*))?(?:[?#].*)?$/i;

/** Whether a text is a server's name with a path, or a path. */
const isPlace = (text) => /^[\w-]+(?:\.[\w-]+)+(?::\d+)?\/|^localhost(?::\d+)?\/|^\.{0,2}\//.test(text);

/**
 * A repository whose files can be listed, as people write it, or the address of its file.
 * @returns {?{repo: string, revision: string, type?: string, folder?: string, url: string}} url: of the file or folder
 */
export function readRepository(text) {
  const typed = text.trim();
  const [, page, tree = 'main', below = ''] = PAGE.exec(typed) ?? [];
  if (page) {
    const folder = below && `${below.replace(/\/$/, '')}/`;
    return { repo: page, revision: tree, folder, url: `${HUB}/${page}/resolve/${tree}/${folder}` };
  }
  const [, repo, type, file, revision = 'main'] = (!isPlace(typed) && SHORT.exec(typed)) || [];
  if (!repo) return null;
  const url = `${HUB}/${repo}/resolve/${encodeURIComponent(revision)}/${file ?? ''}`;
  return file ? { repo: '', revision, url } : { repo, revision, type, url };
}

const isAllowed = ({ protocol, hostname, origin }) =>
  protocol === 'https:' || ['localhost', '127.0.0.1'].includes(hostname) || origin === location.origin;

/** @returns {{url: string, problem: string}} the whole address, or a sentence about the problem */
export function readAddress(text) {
  const typed = text.trim();
  const { url: found } = readRepository(typed) ?? {};
  if (found) return { url: found, problem: '' };
  const withoutScheme = /^[\w-]+(\.[\w-]+)+(:\d+)?\//.test(typed);
  const whole = withoutScheme ? `https://${typed}` : typed;
  const base = /^\.{0,2}\//.test(whole) ? document.baseURI : undefined;
  const url = URL.canParse(whole, base) ? new URL(whole, base) : null;
  if (!url || !/^https?:$/.test(url.protocol))
    return { url: '', problem: say`That is no address yet. It begins with https://, or is OWNER/REPO on Hugging Face.` };
  if (!isAllowed(url)) {
    return {
      url: '',
      problem: say`Only addresses with https:// can be fetched; http:// is for a server on this device (localhost).`,
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
  return oneLine(readable.replace(/\.gguf$/i, ''), 60) || say`Model`;
}

/** An address without its query, since signatures and tokens must not be stored. */
export const place = (url) => url.split(/[?#]/)[0];

// SPDX-License-Identifier: MIT
// Hugging Face and mirrors with the same addresses: makes the address of a file, finds the file that a page is about,
// and gets the hash of a large file's contents. The answer with the bytes does not have the hash (the redirect does,
// but a page cannot see it), but `/raw/` returns the pointer that represents the file in its repository.

import { ask } from './answer.js';

export const HUB = 'https://huggingface.co';

const POINTER_BYTES = 1024;
const PATIENCE_MS = 5000;

const PAGES = /(?:^|\.)(?:huggingface\.co|hf\.co|hf-mirror\.com)$/;

/** The address of a file in a repository, or of the repository's folder. */
export function hubUrl({ repo, file = '', revision, endpoint }) {
  const path = file.split('/').map(encodeURIComponent).join('/');
  return `${endpoint.replace(/\/+$/, '')}/${repo}/resolve/${encodeURIComponent(revision)}/${path}`;
}

/** The address of a repository's list of files. */
export const hubList = ({ repo, revision, endpoint }) => (
  `${endpoint.replace(/\/+$/, '')}/api/models/${repo}/revision/${encodeURIComponent(revision)}`);

/** The address of the file or folder that a page shows; any other address is returned as it is. */
export function fileOfPage(url) {
  const parsed = new URL(url);
  if (!PAGES.test(parsed.hostname)) return url;
  if (parsed.searchParams.get('download') === 'true') parsed.searchParams.delete('download');
  parsed.pathname = parsed.pathname
    .replace(/^((?:\/[^/]+){2})\/?$/, '$1/tree/main')
    .replace(/^((?:\/[^/]+){2})\/tree\/(.+?)\/?$/, '$1/resolve/$2/')
    .replace(/^((?:\/[^/]+){2})\/blob\//, '$1/resolve/');
  return parsed.href;
}

/** Parses the pointer that represents a large file in a git repository. */
const pointerOf = (text) =>
  /^version https:\/\/git-lfs[^\n]*\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d+)\n/.exec(text)?.slice(1) ?? [];

async function readPointer(server, signal) {
  const answer = await ask(server, 0, POINTER_BYTES, signal);
  try {
    return pointerOf(new TextDecoder().decode(await answer.read() ?? undefined));
  } finally {
    answer.close();
  }
}

/**
 * Requests the SHA-256 of a file's contents, in parallel with the file's first request. `of(size)` resolves to it, or
 * to null: it is optional, so any failure or delay means only that the hash is unknown. Call `end()` in any case.
 */
export function hubHash(server, signal) {
  const url = server.url.replace(/^(https?:\/\/[^?#]*?\/[^/?#]+\/[^/?#]+)\/resolve\//, '$1/raw/');
  if (url === server.url) return { of: async () => null, end() {} };
  const abort = new AbortController();
  const onAbort = () => abort.abort();
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = server.clock.after(PATIENCE_MS, onAbort);
  const found = readPointer({ ...server, url }, abort.signal).catch(() => []);
  return {
    async of(size) {
      const [sha256, bytes] = await found;
      return sha256 && (size === null || Number(bytes) === size) ? sha256 : null;
    },
    end() {
      cancel();
      signal.removeEventListener('abort', onAbort);
      abort.abort();
    },
  };
}

// SPDX-License-Identifier: MIT
// What is known about Hugging Face and the mirrors that speak like it: how a file's address is made, which address of
// its pages means which file, and where the hash of a large file's contents stands. The answer with the bytes does not
// tell it (the redirect does, which a page cannot see), but `/raw/` gives the few lines that stand for the file in its
// repository.

import { ask } from './answer.js';

export const HUB = 'https://huggingface.co';

const POINTER_BYTES = 1024;
const PATIENCE_MS = 5000;

const PAGES = /(?:^|\.)(?:huggingface\.co|hf\.co|hf-mirror\.com)$/;

/** The address of a file of a repository, or of the repository's folder. */
export function hubUrl({ repo, file = '', revision, endpoint }) {
  const path = file.split('/').map(encodeURIComponent).join('/');
  return `${endpoint.replace(/\/+$/, '')}/${repo}/resolve/${encodeURIComponent(revision)}/${path}`;
}

/** Where a repository says which files it has. */
export const hubList = ({ repo, revision, endpoint }) => (
  `${endpoint.replace(/\/+$/, '')}/api/models/${repo}/revision/${encodeURIComponent(revision)}`);

/** The file or folder that a page shows, where the address is that of its page; any other address as it is. */
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

/** What stands for a large file in a git repository. */
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
 * Asks for the SHA-256 of a file's contents, beside its first request. `of(size)` resolves to it, or to null: nothing
 * depends on it, so whatever goes wrong, or takes long, means only that it is not known. `end()` in any case.
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

// SPDX-License-Identifier: MIT
// Reads the address of the page: `?model=URL&prompt=TEXT`.

/** @returns {{model: ?string, prompt: ?string}} */
export function readLink() {
  const query = new URLSearchParams(location.search);
  return { model: query.get('model'), prompt: query.get('prompt') };
}

/** Removes the request from the address, so that a reload does not repeat it. */
export function forgetLink() {
  const url = new URL(location.href);
  for (const name of ['model', 'prompt']) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(history.state, '', url);
}

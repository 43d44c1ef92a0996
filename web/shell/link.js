// SPDX-License-Identifier: MIT
// What the address of the page asks for: `?model=URL&prompt=TEXT`.

/** @returns {{model: ?string, prompt: ?string}} */
export function readLink() {
  const query = new URLSearchParams(location.search);
  return { model: query.get('model'), prompt: query.get('prompt') };
}

/** What a link asks for is done once, not at every reload. */
export function forgetLink() {
  const url = new URL(location.href);
  for (const name of ['model', 'prompt']) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(history.state, '', url);
}

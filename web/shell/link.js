// SPDX-License-Identifier: MIT
// The address of the page: `?model=URL&prompt=TEXT` fills fields, and `#c=ID` is a conversation, so that the browser's
// back button, bookmarks and links in new tabs work. What other apps share with the installed page comes as
// `title`, `prompt` and `url` (manifest.webmanifest).

const SHARED = ['title', 'prompt', 'url'];

/** @returns {{model: ?string, prompt: ?string}} */
export function readLink() {
  const query = new URLSearchParams(location.search);
  const shared = SHARED.filter((name) => query.has(name)).map((name) => query.get(name));
  return { model: query.get('model'), prompt: shared.length ? shared.filter(Boolean).join('\n') : null };
}

/** The preset in the address, encoded; undefined if there is none. */
export const presetInLink = () => /^#preset=(.+)/.exec(location.hash)?.[1];

const CONVERSATION = /^#c=([\w-]{1,64})$/;

/** The address of a conversation within the page; '' is a new one. */
export const addressOf = (id) => (id ? `#c=${id}` : '#');

/** The conversation in the address; '' if there is none. */
export const conversationInLink = () => CONVERSATION.exec(location.hash)?.[1] ?? '';

/**
 * Puts a conversation into the address.
 * @param {boolean} isOther whether it is another one than before, to which the back button leads
 */
export function linkConversation(id, isOther) {
  if (id === conversationInLink()) return;
  const url = new URL(location.href);
  url.hash = id ? addressOf(id) : '';
  if (isOther) history.pushState(null, '', url);
  else history.replaceState(history.state, '', url);
}

/** Removes the request from the address, so that a reload does not repeat it. */
export function forgetLink() {
  const url = new URL(location.href);
  for (const name of ['model', ...SHARED]) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(history.state, '', url);
}

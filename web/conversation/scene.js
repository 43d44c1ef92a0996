// SPDX-License-Identifier: MIT
// What the page's tools know of a conversation, and what they may do in it.

/**
 * @param {import('./talk.js').Talk} talk
 * @param {import('./log.js').Log} log
 * @param {import('../model/session.js').Session} session
 */
export const sceneOf = (talk, log, session) => ({
  session,
  conversation: talk.id,
  texts: talk.path.flatMap(({ texts = [] }) => texts),
  documents: () => import('./documents.js'),
  wait: (sentence) => talk.run?.wait(sentence),
  onChange: () => talk.run && log.viewOf(talk.run.message)?.push({ type: 'call' }, talk.run.message),
});

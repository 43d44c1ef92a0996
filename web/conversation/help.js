// SPDX-License-Identifier: MIT
// What could help a reply that has failed, where trying again does not: after the engine itself has failed only a fresh
// one, after a message that is too long another one.
import { codeOf } from '../shell/failure.js';

/** Whether a model is lost with an error: nothing else can be done with it. */
export const isLost = (error) => codeOf(error).startsWith('engine/');

/**
 * @param {Error} error
 * @param {object} page
 * @param {import('../model/session.js').Session} page.session
 * @param {import('../shell/settings.js').Settings} page.settings
 * @param {import('./talk.js').Talk} page.talk the conversation that is shown
 * @param {(choice: object) => Promise<void>} page.load loads a model
 * @param {() => void} page.regenerate answers the last question once more
 * @param {(message: object) => void} page.edit a message goes back into the field
 * @returns {?{label: string, run: Function}}
 */
export function helpFor(error, page) {
  if (codeOf(error) === 'use/context') return shorten(error, page);
  if (codeOf(error).startsWith('image/'))
    return { label: 'Edit the message', run: () => page.edit(questionOf(page.talk)) };
  return isLost(error) ? restart(page) : null;
}

const questionOf = (talk) => talk.path.findLast(({ role }) => role === 'user');

/** The first of several that have failed with the engine restarts it. */
function restart({ session, load, regenerate }) {
  const { choice } = session;
  const run = async () => {
    const loading = !session.model && !session.isLoading && load(choice);
    regenerate();
    await loading;
  };
  return { label: 'Restart the model', run };
}

/**
 * What is too long: the system prompt, or else the message. Where the model itself ends, a larger context is no advice.
 */
function shorten(error, { session, settings, talk, regenerate, edit }) {
  const { contextSize, contextLength } = session.model?.info ?? {};
  if (contextSize >= contextLength) error.hint = 'This model cannot hold more.';
  const asked = questionOf(talk); // a conversation out of a file may have none
  if (settings.system.length <= (asked?.content.length ?? 0))
    return asked ? { label: 'Edit the message', run: () => edit(asked) } : null;
  const run = async () => {
    if (await settings.editSystem()) regenerate();
  };
  return { label: 'Shorten the system prompt', run };
}

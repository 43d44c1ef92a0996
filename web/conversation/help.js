// SPDX-License-Identifier: MIT
// Finds a remedy for a failed reply if trying again does not help: restarting the model after its engine has failed, or
// editing a message that is too long.
import { codeOf } from '../shell/failure.js';
import { say } from '../shell/words.js';

/** Whether the error means that the model cannot be used any more. */
export const isLost = (error) => /^(?:engine|gpu)\//.test(codeOf(error));

/**
 * @param {Error} error
 * @param {object} page
 * @param {import('../model/session.js').Session} page.session
 * @param {import('../shell/settings.js').Settings} page.settings
 * @param {import('./talk.js').Talk} page.talk the conversation that is shown
 * @param {(choice: object) => Promise<void>} page.load loads a model
 * @param {() => void} page.regenerate writes a new reply to the last question
 * @param {(message: object) => void} page.edit puts a message back into the field
 * @returns {?{label: string, run: Function}}
 */
export function helpFor(error, page) {
  if (codeOf(error) === 'use/context') return shorten(error, page);
  if (codeOf(error).startsWith('image/'))
    return { label: say`Edit the message`, run: () => page.edit(questionOf(page.talk)) };
  return isLost(error) ? restart(page) : null;
}

const questionOf = (talk) => talk.path.findLast(({ role }) => role === 'user');

/** Restarts the model. If several replies failed with the engine, only the first remedy restarts it. */
function restart({ session, load, regenerate }) {
  const { choice } = session;
  const run = async () => {
    const loading = !session.model && !session.isLoading && load(choice);
    regenerate();
    await loading;
  };
  return { label: say`Restart the model`, run };
}

/**
 * Shortens what is too long: the system prompt, or else the message. If the model itself allows no larger context, the
 * hint says so.
 */
function shorten(error, { session, settings, talk, regenerate, edit }) {
  const { contextSize, contextLength } = session.model?.info ?? {};
  if (contextSize >= contextLength) error.advice = say`This model cannot hold more.`;
  const asked = questionOf(talk); // an imported conversation may have none
  const { content = '', texts = [] } = asked ?? {};
  if (settings.system.length <= texts.reduce((sum, { text }) => sum + text.length, content.length))
    return asked ? { label: say`Edit the message`, run: () => edit(asked) } : null;
  const run = async () => {
    if (await settings.editSystem()) regenerate();
  };
  return { label: say`Shorten the system prompt`, run };
}

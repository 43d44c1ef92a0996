// SPDX-License-Identifier: MIT
// Models with vision: finds the projector among files, and offers help if the model in use has no vision.
import { byId, button } from '../shell/dom.js';
import { bytes } from '../shell/format.js';
import { say } from '../shell/words.js';
import { SEEING } from './known.js';

/** Whether a file is a projector, judged by its name. */
export const isProjector = ({ name }) => /mmproj.*\.gguf$/i.test(name);

/** Whether a model would have vision if it were loaded with its projector. @param {?import('quern').Model} model */
export const lacksVision = (model) => Boolean(model?.info.takesVision && !model.info.vision);

/**
 * Whether the model in use can read images. If not, a notice says what helps.
 * @param {import('./session.js').Session} session
 * @param {import('../shell/tray.js').Tray} tray
 * @param {(one: object) => void} suggest shows a known file in the model dialog
 */
export function maySee({ model }, tray, suggest) {
  if (model?.info.vision) return true;
  const [one] = SEEING.files;
  const [sentence, action] = lacksVision(model)
    ? [
        say`For images this model needs its projector, a second file (mmproj-….gguf).`,
        button(say`Choose that file`, () => byId('file-input').click()),
      ]
    : [
        say`The model in use reads text only. ${SEEING.label} sees images: ${bytes(one.size)} with its projector.`,
        button(say`Show ${SEEING.label}`, () => suggest(one)),
      ];
  tray.notice('images', sentence, [action]);
  return false;
}

// SPDX-License-Identifier: MIT
// Models with vision: of a pair of files, which one is the projector, and what helps where a model does not see.
import { byId, button } from '../shell/dom.js';
import { bytes } from '../shell/format.js';
import { SEEING } from './known.js';

/** Whether a file is the projector of a model with vision, as such files are called. */
export const isProjector = ({ name }) => /mmproj.*\.gguf$/i.test(name);

/** Whether a model could see, had it been loaded with its projector. @param {?import('quern').Model} model */
export const lacksVision = (model) => Boolean(model?.info.takesVision && !model.info.vision);

/**
 * Whether images can be shown to the model in use; says what helps if not.
 * @param {import('./session.js').Session} session
 * @param {import('../shell/tray.js').Tray} tray
 * @param {(one: object) => void} suggest shows a known file in the model dialog
 */
export function maySee({ model }, tray, suggest) {
  if (model?.info.vision) return true;
  const [one] = SEEING.files;
  const [sentence, action] = lacksVision(model)
    ? [
        'This model sees only with its projector, a second file (mmproj-….gguf).',
        button('Choose that file', () => byId('file-input').click()),
      ]
    : [
        `The model in use reads text only. ${SEEING.label} sees images: ${bytes(one.size)} with its projector.`,
        button(`Show ${SEEING.label}`, () => suggest(one)),
      ];
  tray.notice('images', sentence, [action]);
  return false;
}

// SPDX-License-Identifier: MIT
// Renders chat templates in an engine's worker. A separate file of the package, which the first conversation fetches.

import { Refusal, TemplateError } from '../template/meter.js';
import { render as renderText } from '../template/render.js';
import { QuernError, badParam } from '../shared/errors.js';

/** Whether an error is the template's fault. A RangeError is: the template made a text or a number too large. */
const isTemplates = (error) => error instanceof TemplateError || error instanceof RangeError;

/**
 * @param {string} template
 * @param {string} json its variables
 * @param {import('../reply/chat.js').Asker} asker
 * @returns {Promise<string>}
 */
export async function render(template, json, asker) {
  try {
    return await renderText(template, json, asker.through);
  } catch (error) {
    if (!isTemplates(error)) throw error;
    const problem = error.message.replace(/[\x00-\x1f\x7f]/g, ' ').slice(0, 120).replace(/[\s.]+$/, '');
    if (error instanceof Refusal) throw badParam('messages', `do not suit the model's chat template: ${problem}`);
    throw new QuernError('model/format', `The model's chat template cannot be used: ${problem}.`, {
      detail: { rule: 'template' },
    });
  }
}

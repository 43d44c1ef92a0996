// SPDX-License-Identifier: MIT
// quern/prompt-api: the browser's Prompt API over a model. The documentation is in prompt-api.d.ts.

export { languageModel } from './facades/prompt-api.js';
export { QuernError } from './shared/errors.js';

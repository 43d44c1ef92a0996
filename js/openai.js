// SPDX-License-Identifier: MIT
// quern/openai: the OpenAI API of a model in the same program. The documentation is in openai.d.ts.

export { APIError, openai, openaiFetch } from './facades/openai-client.js';
export { QuernError } from './shared/errors.js';

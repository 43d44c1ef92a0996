// SPDX-License-Identifier: MIT
// quern/ai-sdk: a model as a provider of the AI SDK. The documentation is in ai-sdk.d.ts.

export { quern } from './facades/ai-sdk.js';
export { QuernError } from './shared/errors.js';

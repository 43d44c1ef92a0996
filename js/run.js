// SPDX-License-Identifier: MIT
// quern/run: conversations in which the model's calls are carried out. The documentation is in run.d.ts.

export { run, tool } from './facades/run.js';
export { QuernError } from './shared/errors.js';

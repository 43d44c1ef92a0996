// SPDX-License-Identifier: MIT
// quern/testing: a model that answers from a script. The documentation is in testing.d.ts.

export { fakeModel } from './facades/testing.js';
export { QuernError } from './shared/errors.js';

// SPDX-License-Identifier: MIT
// quern/remote: code written for a loaded model, over a server. The documentation is in remote.d.ts.

export { remote } from './facades/remote.js';
export { QuernError } from './shared/errors.js';

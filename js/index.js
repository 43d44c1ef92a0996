// SPDX-License-Identifier: MIT
// quern in a page. The documentation of everything exported here is in index.d.ts.

import { openModel } from './model.js';
import { Models } from './models.js';
import { platform } from './platform-web.js';

export { QuernError } from './errors.js';
export { support } from './platform-web.js';

export function load(source, options) {
  return openModel(platform, source, options);
}

export const models = new Models(platform);

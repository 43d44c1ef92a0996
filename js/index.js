// SPDX-License-Identifier: MIT
// quern in a page. The documentation of everything exported here is in index.d.ts.

import { openModel } from './page/model.js';
import { Models } from './page/models.js';
import { platform } from './page/platform-web.js';

export { QuernError } from './shared/errors.js';
export { support } from './page/platform-web.js';

export function load(source, options) {
  return openModel(platform, source, options);
}

export const models = new Models(platform);

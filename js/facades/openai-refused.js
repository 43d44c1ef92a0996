// SPDX-License-Identifier: MIT
// What of a request is refused by its name because it is not built.

import { QuernError } from '../shared/errors.js';

export function unsupported(path, what = 'is not supported by this version') {
  return new QuernError('use/param', `${path} ${what}.`, { detail: { param: path, reason: 'unsupported_parameter' } });
}

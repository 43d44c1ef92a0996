// SPDX-License-Identifier: MIT
// Makes the error for a part of a request that is not supported.

import { QuernError } from '../shared/errors.js';

export function unsupported(path, what = 'is not supported by this version') {
  return new QuernError('use/param', `${path} ${what}.`, { detail: { param: path, reason: 'unsupported_parameter' } });
}

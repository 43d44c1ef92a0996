// SPDX-License-Identifier: MIT
// Explains why a path of this machine cannot be read.

import { QuernError } from './errors.js';

const REASONS = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'it leads through a file',
  EACCES: 'it may not be read',
  EPERM: 'it may not be read',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'it is too long for a path',
};

/**
 * @param {string | {code: string}} why a reason, or an error of the system
 * @param {string} [param] the argument that named the path
 */
export function unreadable(path, why, param = 'source') {
  const reason = why.code ? REASONS[why.code] ?? why.code : why;
  return new QuernError('use/param', `'${path.slice(-64)}' cannot be read: ${reason}.`,
    { phase: 'load', detail: { param }, cause: why.code && why });
}

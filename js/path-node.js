// SPDX-License-Identifier: MIT
// Paths of this machine in what people read: how one is shown, and why it cannot be read.

import { QuernError } from './errors.js';

/** Text that may be shown anywhere: nothing in it controls a terminal, or the order in which it is read. */
export const shown = (text) => text.replace(/\p{C}/gu, '\uFFFD');

const REASONS = {
  ENOENT: 'there is no such file', ENOTDIR: 'it leads through a file', EACCES: 'it may not be read', EPERM: 'it may not be read',
  ELOOP: 'its links lead in a circle', ENAMETOOLONG: 'it is too long for a path',
};

/** @param {string | {code: string}} why a reason, or what the system says */
export function unreadable(path, why) {
  const reason = why.code ? REASONS[why.code] ?? why.code : why;
  return new QuernError('use/param', `'${shown(path.slice(-64))}' cannot be read: ${reason}.`, { phase: 'load', detail: { param: 'source' }, cause: why.code && why });
}

// SPDX-License-Identifier: MIT
// Modules that the page's file shares with files that are loaded later (shared/lent.js).

import { abortable, deadline, sleep, systemClock } from '../shared/clock.js';
import { QuernError, badParam } from '../shared/errors.js';
import { checkOptions, checkTokens } from './options.js';
import { isRecord } from '../shared/kinds.js';
import { DETAIL, PIXELS, above, checkFields, integer, isFields, ofType, read } from './values.js';

export const LENT = {
  abortable, deadline, sleep, systemClock, QuernError, badParam, checkOptions, checkTokens, DETAIL, PIXELS, above,
  checkFields, integer, isFields, isRecord, ofType, read,
};

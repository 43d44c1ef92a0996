// SPDX-License-Identifier: MIT
// Names that the worker's main file shares with the files that are loaded later (shared/lent.js).

import { abortable, deadline, systemClock } from '../shared/clock.js';
import { MARKS } from '../reply/marks.js';
import { QuernError, asQuernError, badParam, fromWire, unknownName } from '../shared/errors.js';
import { piecesOf } from '../shared/stream.js';

export const LENT = {
  MARKS,
  abortable,
  deadline,
  systemClock,
  QuernError,
  asQuernError,
  badParam,
  fromWire,
  unknownName,
  piecesOf,
};

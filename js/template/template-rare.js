// SPDX-License-Identifier: MIT
// Rarely used features, which are added to the tables of the others (late.js).

import { FILTERS } from './filters.js';
import { formatPercent } from './percent.js';
import { FUNCTIONS } from './functions.js';
import { rare } from './late.js';
import { METHODS } from './methods.js';
import { RARE_FILTERS } from './rare-filters.js';
import { RARE_METHODS } from './rare-methods.js';
import { RARE_TESTS } from './rare-tests.js';
import { TESTS } from './tests.js';
import { fail, wantText } from './texts.js';
import { timeText } from './time.js';
import { Cycler, Joiner, table } from './values.js';

const RARE_FUNCTIONS = table([
  ['cycler', '*', (_, [items]) => (items.length ? new Cycler(items) : fail('cycler() needs at least one item'))],
  ['joiner', 'sep', (_, [separator = ', ']) => new Joiner(separator)],
  ['strftime_now', 'format!', (meter, [format]) => timeText(meter, wantText(format))],
]);

/** Adds everything, once. */
export function add() {
  if (rare.isThere) return;
  for (const [to, from] of [
    [FILTERS, RARE_FILTERS],
    [TESTS, RARE_TESTS],
    [METHODS.str, RARE_METHODS],
    [FUNCTIONS, RARE_FUNCTIONS],
  ]) {
    for (const [name, builtin] of from) to.set(name, builtin);
  }
  Object.assign(rare, { isThere: true, formatPercent });
}

// SPDX-License-Identifier: MIT
// jinja2's tests that few templates use. A part of template-rare.js.

import { runClass } from './classes.js';
import { equal } from './compare.js';
import { arithmetic } from './numbers.js';
import { isWhole } from './tests.js';
import { fail, tableOf } from './texts.js';
import { isNumber, typeName } from './values.js';

/** @returns {bigint | number} */
function rest(meter, v, by) {
  if (!isNumber(v) || !isNumber(by)) fail(`numbers are needed here, not '${typeName(isNumber(v) ? by : v)}'`);
  return arithmetic(meter, '%', v, by);
}

const isRest = (meter, [v, by = 2n], wanted) => equal(meter, rest(meter, v, by), wanted);

/** Whether two values are the same object, as constants and small numbers are in Python. */
const isSame = (_, [v, other]) => v === other && (!isWhole(v) || (v >= -5n && v <= 256n));

export const RARE_TESTS = tableOf('value!', [
  ['divisibleby', 'num!', isRest, 0n],
  ['even', '', isRest, 0n],
  ['lower', '', runClass, 'islower'],
  ['odd', '', isRest, 1n],
  ['sameas', 'other!', isSame],
  ['upper', '', runClass, 'isupper'],
]);

// SPDX-License-Identifier: MIT
// Methods of texts that few templates call. A part of template-rare.js.

import { runClass } from './classes.js';
import { formatBraces } from './braces.js';
import { family, wantDict } from './methods.js';
import { runCount, runLines, runPad, runPartition, runTabs } from './rare-texts.js';
import { keeping, plainText, runCase, runFind, tableOf, worked } from './texts.js';
import { textOf } from './values.js';

const CLASSES = 'alnum alpha ascii decimal digit lower numeric printable space title upper'
  .split(' ')
  .map((name) => `is${name}`);

export const RARE_METHODS = tableOf('self!', [
  ...family(['casefold', 'swapcase'], keeping(runCase)),
  ...family(CLASSES, runClass),
  ['center', '1! 2', keeping(runPad), 'middle'],
  ['count', '1! 2 3', runCount],
  ['expandtabs', 'tabsize', keeping(runTabs)],
  ['isidentifier', '', (meter, [v]) => /^[\p{XIDS}_]/u.test(worked(meter, v)) && !/\P{XIDC}/u.test(textOf(v))],
  ['ljust', '1! 2', keeping(runPad), 'left'],
  ['partition', '1!', keeping(runPartition)],
  ['rindex', '1! 2 3', runFind, { isLast: true, fails: true }],
  ['rjust', '1! 2', keeping(runPad), 'right'],
  ['rpartition', '1!', keeping(runPartition), true],
  ['splitlines', 'keepends', keeping(runLines)],
  ['zfill', '1!', keeping(runPad), 'zero'],
  ['format', '* **', (meter, [text, given, named]) => formatBraces(meter, plainText(text), given, named)],
  ['format_map', '1!', (meter, [text, given]) => formatBraces(meter, plainText(text), [], wantDict(given))],
]);

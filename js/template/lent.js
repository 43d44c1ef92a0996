// SPDX-License-Identifier: MIT
// Modules that the file of chat templates shares with template-rare.js (shared/lent.js).

import { compare, countSearch, equal, lengthOf, walk } from './compare.js';
import { FILTERS, atPath, runEscape, runFirst, wantNumber, wholeOf } from './filters.js';
import { FUNCTIONS, pairOf } from './functions.js';
import { rare } from './late.js';
import { changeCase, isLower, isPrintable, isSpace, isUpper } from './letters.js';
import { attribute, item } from './lookup.js';
import { TemplateError } from './meter.js';
import { METHODS, family, methodOf, wantDict } from './methods.js';
import { amount, arithmetic, exponentText, floatText, isFloat, pointed, readFloat, special } from './numbers.js';
import { escaped, intText, repr, str } from './repr.js';
import { TESTS, isWhole } from './tests.js';
import {
  fail, intOr, isGiven, isYes, keeping, parts, placeOf, plainText, runCase, runFind, runJoin, runSplit, separatorOf,
  tableOf, wantText, within, worked,
} from './texts.js';
import {
  Cycler, Dict, Generator, Joiner, Range, Tuple, Undefined, View, asNumber, integer, isInt, isNumber, isSequence,
  isText, itemsOf, letterCount, letters, table, textOf, typeName,
} from './values.js';

export const LENT = {
  Cycler,
  Dict,
  FILTERS,
  FUNCTIONS,
  Generator,
  Joiner,
  METHODS,
  Range,
  TESTS,
  TemplateError,
  Tuple,
  Undefined,
  View,
  amount,
  arithmetic,
  asNumber,
  atPath,
  attribute,
  changeCase,
  compare,
  countSearch,
  equal,
  escaped,
  exponentText,
  fail,
  family,
  floatText,
  intOr,
  intText,
  integer,
  isFloat,
  isGiven,
  isInt,
  isLower,
  isNumber,
  isPrintable,
  isSequence,
  isSpace,
  isText,
  isUpper,
  isWhole,
  isYes,
  item,
  itemsOf,
  keeping,
  lengthOf,
  letterCount,
  letters,
  methodOf,
  pairOf,
  parts,
  placeOf,
  plainText,
  pointed,
  rare,
  readFloat,
  repr,
  runCase,
  runEscape,
  runFind,
  runFirst,
  runJoin,
  runSplit,
  separatorOf,
  special,
  str,
  table,
  tableOf,
  textOf,
  typeName,
  walk,
  wantDict,
  wantNumber,
  wantText,
  wholeOf,
  within,
  worked,
};

// SPDX-License-Identifier: MIT
// Rarely used features are in a file of their own (template-rare.js), which is loaded with the first template that uses
// one, and then adds them to the tables. Code that finds a rare name before throws NeedsRare, and the template is
// rendered again.

export class NeedsRare extends Error {}

const words = (text) => new Set(text.split(' '));

/** Rare names, by the kind of their table. */
const NAMES = {
  filter: words(
    'attr batch center dictsort filesizeformat forceescape format groupby indent max min random reverse round slice sort striptags sum ' +
      'truncate unique urlencode wordcount xmlattr',
  ),
  test: words('divisibleby even lower odd sameas upper'),
  method: words(
    'casefold center count expandtabs format format_map isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric ' +
      'isprintable isspace istitle isupper ljust partition rindex rjust rpartition splitlines swapcase zfill',
  ),
  function: words('cycler joiner strftime_now'),
};

export const rare = {
  isThere: false,
  /** Returns text % values. @type {(meter: any, text: string, values: any) => string} */
  formatPercent: () => { throw new NeedsRare(); },
};

/**
 * Finds a name in a table; undefined if it does not exist.
 * @param {keyof typeof NAMES} kind
 * @param {Map<string, any>} table
 */
export function find(kind, table, name) {
  const found = table.get(name);
  if (found === undefined && !rare.isThere && NAMES[kind].has(name)) throw new NeedsRare();
  return found;
}

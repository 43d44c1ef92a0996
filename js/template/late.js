// SPDX-License-Identifier: MIT
// What few templates use comes in a file of its own (template-rare.js), with the first template that does, and then is
// in the tables like the rest. Whoever meets a name of it before says so by NeedsRare, and the template is rendered
// anew.

export class NeedsRare extends Error {}

const words = (text) => new Set(text.split(' '));

/** Names that it adds to the tables of each kind. */
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
  /** text % values @type {(meter: any, text: string, values: any) => string} */
  formatPercent: () => { throw new NeedsRare(); },
};

/**
 * What a table has under a name; undefined: nothing.
 * @param {keyof typeof NAMES} kind
 * @param {Map<string, any>} table
 */
export function find(kind, table, name) {
  const found = table.get(name);
  if (found === undefined && !rare.isThere && NAMES[kind].has(name)) throw new NeedsRare();
  return found;
}

// SPDX-License-Identifier: MIT
// Knows where every name is described: declarations, their members, options, error codes. Inline code with such a name
// becomes a link: `LoadOptions.kv`, `kv: 'q8'`, `models.remove()`, `mem/plan`, `net/*`.

import { dirname, relative } from 'node:path/posix';

/** The types of variables with these names, everywhere in the documentation. */
const VARIABLES = {
  support: 'Support',
  model: 'Model',
  models: 'Models',
  reply: 'Reply',
  result: 'Result',
  error: 'QuernError',
  info: 'Info',
  store: 'Store',
};

/** Types whose options may be named alone, if only one of them has such an option. */
const OPTIONS = ['LoadOptions', 'CompleteOptions', 'ChatOptions'];

/** The address of one page, relative to another. */
export const addressFrom = (from, to) => relative(dirname(from), to) || '.';

export class Names {
  #places = new Map();      // name -> 'page#anchor'

  /** Adds a name; the first place of a name wins. */
  add(name, page, anchor) {
    if (!this.#places.has(name)) this.#places.set(name, `${page}#${anchor}`);
  }

  get all() {
    return [...this.#places.keys()];
  }

  /** @param {string} [owner] the declaration that contains the code; its members may be named alone */
  #find(code, owner) {
    const name = code.replace(/\([^)]*\)/g, '').replace(/: .*$/, '');
    const [first, ...rest] = name.split('.');
    const candidates = [name, ...(rest.length ? [[VARIABLES[first], ...rest].join('.')] : [])];
    if (owner) candidates.push(`${owner}.${name}`);
    const options = owner ? [] : OPTIONS.map((type) => `${type}.${name}`).filter((path) => this.#places.has(path));
    if (options.length === 1) candidates.push(options[0]);
    return candidates.find((path) => this.#places.has(path));
  }

  /** The address, seen from a page, of what a piece of code names; undefined when it names nothing or its own place. */
  linker(page, owner) {
    return (code) => {
      const name = this.#find(code, owner);
      const place = name !== undefined && name !== owner && this.#places.get(name);
      return place ? place.replace(/^[^#]*/, (to) => (to === page ? '' : addressFrom(page, to))) : undefined;
    };
  }
}

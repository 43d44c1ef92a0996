// SPDX-License-Identifier: MIT
// What one rendering may use up. Every step counts, and work that grows with what a template handles counts by its
// size: so a hostile template ends by its count, never by a clock, and at the same place on every machine.

/** Steps of one operation, which nobody can interrupt: some milliseconds. */
export const MOST_AT_ONCE = 2 ** 15;

/** What is wrong with a template, or with what it does; the engine's own errors are none of these. */
export class TemplateError extends Error {}

export class Meter {
  /** Steps that are left. */
  left;
  #atOnce;
  #least = 0;             // of them that the operation must leave

  /** @param {number} steps @param {number} [atOnce] of them that one operation may take */
  constructor(steps, atOnce = MOST_AT_ONCE) {
    this.left = steps;
    this.#atOnce = atOnce;
  }

  /** An operation begins. */
  begin() {
    this.#least = Math.max(0, this.left - this.#atOnce);
    this.count(1);
  }

  /**
   * @param {number} steps about a quarter of a microsecond each: 64 letters that are compared or copied, or one that is
   * looked at
   */
  count(steps) {
    this.left -= steps;
    if (!(this.left >= this.#least))
      throw new TemplateError(this.#least ? 'one of its operations takes too many steps' : 'it takes too many steps');
  }
}

// SPDX-License-Identifier: MIT
// Limits the work of one rendering. Every step is counted, and work that grows with a template's values is counted by
// their size. So a hostile template ends by its count, never by a clock, and at the same point on every machine.

/** Most steps of one operation, which cannot be interrupted: some milliseconds. */
export const MOST_AT_ONCE = 2 ** 15;

/** An error of a template, or of what it does; not an error of the package. */
export class TemplateError extends Error {}

/** What a template says when it refuses a conversation. */
export class Refusal extends TemplateError {}

export class Meter {
  /** Remaining steps. */
  left;
  #atOnce;
  #least = 0;             // remaining steps at the end of this operation, at least

  /** @param {number} steps @param {number} [atOnce] most steps of one operation */
  constructor(steps, atOnce = MOST_AT_ONCE) {
    this.left = steps;
    this.#atOnce = atOnce;
  }

  /** Begins an operation. */
  begin() {
    this.#least = Math.max(0, this.left - this.#atOnce);
    this.count(1);
  }

  /**
   * Counts steps.
   * @param {number} steps about a quarter of a microsecond each: comparing or copying 64 letters, or examining one
   */
  count(steps) {
    this.left -= steps;
    if (!(this.left >= this.#least))
      throw new TemplateError(this.#least ? 'one of its operations takes too many steps' : 'it takes too many steps');
  }
}

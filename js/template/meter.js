// SPDX-License-Identifier: MIT
// What one rendering may use up. Every step counts, and work that grows with what a template handles counts by its size: so a hostile template ends
// by its count, never by a clock, and at the same place on every machine.

/** What is wrong with a template, or with what it does; the engine's own errors are none of these. */
export class TemplateError extends Error {}

export class Meter {
  /** Steps that are left. */
  left;

  constructor(steps) {
    this.left = steps;
  }

  /** @param {number} steps about as long as reading some letters of a text each */
  count(steps) {
    this.left -= steps;
    if (!(this.left >= 0)) throw new TemplateError('it takes too many steps');
  }
}

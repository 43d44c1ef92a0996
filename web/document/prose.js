// SPDX-License-Identifier: MIT
// Collects the text of a document as Markdown: paragraphs with a blank line between them, items and rows line by line.
// In a table's cell everything is one line, inner tables too.
import { Refusal } from './refusal.js';

/** Most characters of a text. A token has some four letters, so no context of this page holds more. */
export const LARGEST = 4e6;

export class Prose {
  #lines = [];
  #line = '';
  #size = 0;
  #gap = 0;       // line ends before the next line
  #depth = 0;     // tables around the present place
  #cells = [];    // of the row of the outermost table
  #isCell = false;      // inside one of them
  #rows = 0;

  add(text) {
    this.#line += text;
    this.#count(text.length);
  }

  /**
   * Ends a line.
   * @param {number} gap line ends before and after it: 2 for a paragraph, 1 for an item
   * @param {string} [mark] what it begins with
   */
  end(gap, mark = '') {
    if (this.#depth) {
      this.#line += ' ';
      return;
    }
    const line = this.#line.trimEnd();
    this.#line = '';
    this.#gap = Math.max(this.#gap, gap);
    if (line.trim()) this.#put(mark + line, gap);
  }

  /** A mark of a place, such as "[page 3]". */
  place(name) {
    this.end(2);
    this.#put(`[${name}]`, 2);
  }

  openTable() {
    if (this.#depth === 0) {
      this.end(2);
      this.#rows = 0;
    }
    this.#depth++;
  }

  closeTable() {
    this.closeRow();
    if (this.#depth > 0) this.#depth--;
    this.end(2);
  }

  /** Cells and rows may end without a word, as in HTML, when the next one begins. */
  openCell() {
    if (this.#depth !== 1) return;
    this.closeCell();
    this.#line = '';
    this.#isCell = true;
  }

  closeCell() {
    if (this.#depth > 1) this.end(1);
    if (this.#depth !== 1 || !this.#isCell) return;
    this.#cells.push(this.#line.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim());
    this.#line = '';
    this.#isCell = false;
  }

  closeRow() {
    if (this.#depth !== 1) return;
    this.closeCell();
    if (this.#cells.some(Boolean)) {
      this.#put(`| ${this.#cells.join(' | ')} |`, 1);
      if (this.#rows++ === 0) this.#put(`|${' --- |'.repeat(this.#cells.length)}`, 1);
    }
    this.#cells = [];
  }

  toString() {
    this.#depth = 0;
    this.end(2);
    return this.#lines.join('');
  }

  #put(line, gap) {
    if (this.#lines.length) this.#lines.push('\n'.repeat(Math.max(1, this.#gap)));
    this.#lines.push(line);
    this.#gap = gap;
    this.#count(2);
  }

  #count(characters) {
    this.#size += characters;
    if (this.#size > LARGEST) throw new Refusal('{1} has more than {2} million characters of text.', LARGEST / 1e6);
  }
}

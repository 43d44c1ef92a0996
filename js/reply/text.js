// SPDX-License-Identifier: MIT
// What becomes of the tokens of a reply: which of them are thinking, where a stop text ends it, and what must be
// held back until it is known to be neither. The pieces in which a text arrives never change the outcome.

/** Finds the first stop text in a growing text; what may still become one is held back. */
export class StopFilter {
  #stops;
  #held = '';

  constructor(stops) {
    this.#stops = stops;
  }

  /** @returns {{text: string, stopped: boolean}} what is safe to show; with `stopped`, all there will be */
  push(text) {
    this.#held += text;
    const start = this.#firstMatch();
    if (start >= 0) {
      const before = this.#held.slice(0, start);
      this.#held = '';
      return { text: before, stopped: true };
    }
    const keep = this.#held.length - this.#possibleStart();
    const safe = this.#held.slice(0, keep);
    this.#held = this.#held.slice(keep);
    return { text: safe, stopped: false };
  }

  /** The rest, once nothing more comes. */
  end() {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /** Where the stop text starts that is complete first, as if the text came letter by letter; the longest of those. */
  #firstMatch() {
    let first = { start: -1, end: Infinity };
    for (const stop of this.#stops) {
      const start = this.#held.indexOf(stop);
      const end = start + stop.length;
      if (start >= 0 && (end < first.end || (end === first.end && start < first.start))) first = { start, end };
    }
    return first.start;
  }

  /** Length of the longest end of the text that a stop text starts with. */
  #possibleStart() {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let n = Math.min(stop.length - 1, this.#held.length); n > longest; n--) {
        if (this.#held.endsWith(stop.slice(0, n))) longest = n;
      }
    }
    return longest;
  }
}

/** Text without newlines at its start and white space at its end. */
class Trimmed {
  #space = '';
  #started = false;

  push(text) {
    const fresh = this.#started ? text : text.replace(/^\n+/, '');
    if (!fresh) return '';
    this.#started = true;
    const all = this.#space + fresh;
    const kept = all.trimEnd();
    this.#space = all.slice(kept.length);
    return kept;
  }
}

/**
 * The two channels of a reply. The model marks its thinking by two tokens, which are told by their ids: the same
 * letters spelled by other tokens are text.
 */
export class ReplyText {
  #marks;
  #emit;
  #filter;
  #thought = null;      // Trimmed while thinking
  #afterThought = false;
  #stopped = false;
  text = '';
  thinking = '';

  /**
   * @param {object} options
   * @param {{open: number, close: number}} options.marks ids of `<think>` and `</think>`, -1 where there are none
   * @param {boolean} options.startsThinking whether the prompt has opened the thinking already
   * @param {string[]} options.stops
   * @param {(event: {type: 'text' | 'thinking', text: string}) => void} options.emit
   */
  constructor({ marks, startsThinking, stops, emit }) {
    this.#marks = marks;
    this.#emit = emit;
    this.#filter = new StopFilter(stops);
    if (startsThinking) this.#thought = new Trimmed();
  }

  /** Whether a token is a mark, and then what follows from it. Its own letters are never shown. */
  mark(id) {
    if (id < 0 || (id !== this.#marks.open && id !== this.#marks.close)) return false;
    if (id === this.#marks.open && !this.#thought) {
      this.#show('text', this.#filter.end());
      this.#thought = new Trimmed();
    } else if (id === this.#marks.close && this.#thought) {
      this.#thought = null;
      this.#afterThought = true;
    }
    return true;
  }

  /** @returns {boolean} whether a stop text has ended the reply; nothing comes after it */
  push(piece) {
    if (this.#stopped) return true;
    if (this.#thought) {
      this.#show('thinking', this.#thought.push(piece));
      return false;
    }
    const fresh = this.#afterThought ? piece.replace(/^\n+/, '') : piece;
    if (fresh) this.#afterThought = false;
    const { text, stopped } = this.#filter.push(fresh);
    this.#show('text', text);
    this.#stopped = stopped;
    return stopped;
  }

  /** Shows what was held back. */
  end() {
    this.#show('text', this.#filter.end());
  }

  #show(type, text) {
    if (!text) return;
    this[type] += text;
    this.#emit({ type, text });
  }
}

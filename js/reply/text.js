// SPDX-License-Identifier: MIT
// What becomes of the tokens of a reply: which of them are no text but thinking, say, where a stop text ends it, and what must
// be held back until it is known to be neither. The pieces in which a text arrives never change the outcome.

/** How models of the family mark their thinking. */
export const THINKING = { open: '<think>', close: '</think>', type: 'thinking' };

/** What a reply can have beside its text: the marks around it, and the type of its events, which is its name in the result. */
export const CHANNELS = [THINKING];

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

/** The text of a channel that is open. */
class Aside extends Trimmed {
  constructor(channel) {
    super();
    this.channel = channel;
  }
}

/**
 * The channels of a reply. The model marks where one begins and ends by two tokens, which are told by their ids: the same
 * letters spelled by other tokens are text.
 */
export class ReplyText {
  #channels;
  #emit;
  #filter;
  #aside = null;          // while in a channel
  #afterAside = false;
  #stopped = false;
  /** What there is of each, by its type. */
  parts = Object.fromEntries(['text', ...CHANNELS.map(({ type }) => type)].map((type) => [type, '']));

  /**
   * @param {object} options
   * @param {{open: number, close: number, type: string}[]} options.channels those of the model, with the ids of their marks
   * @param {object | null} options.inside the one of them that the prompt has opened already
   * @param {string[]} options.stops
   * @param {(event: {type: string, text: string}) => void} options.emit
   */
  constructor({ channels, inside, stops, emit }) {
    this.#channels = channels;
    this.#emit = emit;
    this.#filter = new StopFilter(stops);
    if (inside) this.#aside = new Aside(inside);
  }

  /** Whether a token is a mark, and then what follows from it. Its own letters are never shown. */
  mark(id) {
    const channel = this.#channels.find(({ open, close }) => id === open || id === close);
    if (!channel) return false;
    if (id === channel.open && !this.#aside) {
      this.#show('text', this.#filter.end());
      this.#aside = new Aside(channel);
    } else if (id === channel.close && this.#aside?.channel === channel) {
      this.#aside = null;
      this.#afterAside = true;
    }
    return true;
  }

  /** @returns {boolean} whether a stop text has ended the reply; nothing comes after it */
  push(piece) {
    if (this.#stopped) return true;
    if (this.#aside) {
      this.#show(this.#aside.channel.type, this.#aside.push(piece));
      return false;
    }
    const fresh = this.#afterAside ? piece.replace(/^\n+/, '') : piece;
    if (fresh) this.#afterAside = false;
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
    this.parts[type] += text;
    this.#emit({ type, text });
  }
}

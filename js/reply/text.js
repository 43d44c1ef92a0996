// SPDX-License-Identifier: MIT
// What becomes of the tokens of a reply: which of them are no text but thinking, say, where a stop text ends it, and
// what must be held back until it is known to be neither. The pieces in which a text arrives never change the outcome.

/**
 * A part of a reply that is no text: the marks around it, as texts or as the ids that a vocabulary has for them, and
 * the type of its events, which is its name in the result. What `begin` makes takes its pieces instead, and says in the
 * end which of them were text after all (calls.js). `gap`: the line ends before it are none of the text.
 * @typedef {{open: any, close: any, type: string, gap?: string, begin?: (emit: (event: object) => void, parts: object)
 *   => Aside}} Channel
 */

/**
 * With it a gap is a stop text that no text has: because of that line ends are held back, which are none of the text
 * where a channel begins.
 */
const NEVER = '\ud800';

/** A text without as many line ends at its end as a gap has. */
function withoutGap(text, gap) {
  let end = text.length;
  while (text.length - end < gap.length && text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** Finds the first stop text in a growing text; what may still become one is held back. */
export class StopFilter {
  #stops;
  #held = '';

  constructor(stops) {
    this.#stops = stops;
  }

  /**
   * @returns {{text: string, stopped?: string}} what is safe to show; with a stop text in `stopped`, all there will be
   */
  push(text) {
    this.#held += text;
    const { start, stop } = this.#firstMatch();
    if (stop) {
      const before = this.#held.slice(0, start);
      this.#held = '';
      return { text: before, stopped: stop };
    }
    const keep = this.#held.length - this.#possibleStart();
    const safe = this.#held.slice(0, keep);
    this.#held = this.#held.slice(keep);
    return { text: safe };
  }

  /** The rest, once nothing more comes. */
  end() {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /**
   * The stop text that is complete first, as if the text came letter by letter, the longest of those, and where it
   * starts.
   */
  #firstMatch() {
    /** @type {{start: number, end: number, stop?: string}} */
    let first = { start: -1, end: Infinity };
    for (const stop of this.#stops) {
      const start = this.#held.indexOf(stop);
      const end = start + stop.length;
      if (start >= 0 && (end < first.end || (end === first.end && start < first.start))) first = { start, end, stop };
    }
    return first;
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
 * The text of a channel that is open: how much of it is shown, and in the end what of it was text.
 * @typedef {{push: (piece: string) => string, end?: (closed: boolean) => string}} Aside
 */

/**
 * The channels of a reply. The model marks where one begins and ends by two tokens, which are told by their ids: the
 * same letters spelled by other tokens are text.
 */
export class ReplyText {
  #channels;
  #emit;
  #filter;
  #channel = null;        // while in one
  /** @type {Aside} */
  #aside;
  #afterAside = false;
  #stopped = false;
  /**
   * What there is of each, by its type, and the stop text that has ended it.
   * @type {{text: string, thinking: string, toolCalls: object[], unfinishedCall?: object, stopText?: string}}
   */
  parts = { text: '', thinking: '', toolCalls: [] };

  /**
   * @param {object} options
   * @param {Channel[]} options.channels those of the model, with the ids of their marks
   * @param {Channel | null} options.inside the one of them that the prompt has opened already
   * @param {string[]} options.stops
   * @param {(event: object) => void} options.emit
   */
  constructor({ channels, inside, stops, emit }) {
    this.#channels = channels;
    this.#emit = emit;
    this.#filter = new StopFilter([...stops, ...channels.filter(({ gap }) => gap).map(({ gap }) => gap + NEVER)]);
    if (inside) this.#enter(inside);
  }

  /** Whether a token is a mark, and then what follows from it. Its own letters are never shown. */
  mark(id) {
    const channel = this.#channels.find(({ open, close }) => id === open || id === close);
    if (!channel) return false;
    if (id === channel.open && !this.#channel) {
      const before = this.#filter.end();
      this.#show('text', withoutGap(before, channel.gap ?? ''));
      this.#enter(channel);
    } else if (id === channel.close && this.#channel === channel) {
      this.#leave(true);
    }
    return true;
  }

  /** That of what comes now; null: it is text. */
  get channel() { return this.#channel; }

  /** @returns {boolean} whether a stop text has ended the reply; nothing comes after it */
  push(piece) {
    if (this.#stopped) return true;
    if (this.#channel) {
      this.#show(this.#channel.type, this.#aside.push(piece));
      return false;
    }
    const fresh = this.#afterAside ? piece.replace(/^\n+/, '') : piece;
    if (fresh) this.#afterAside = false;
    const { text, stopped } = this.#filter.push(fresh);
    this.#show('text', text);
    if (stopped) this.parts.stopText = stopped;
    return this.#stopped = Boolean(stopped);
  }

  /** Shows what was held back. */
  end() {
    if (this.#channel) this.#leave(false);
    this.#show('text', this.#filter.end());
  }

  #enter(channel) {
    this.#channel = channel;
    this.#aside = channel.begin?.(this.#emit, this.parts) ?? new Trimmed();
  }

  #leave(closed) {
    this.#channel = null;
    const text = this.#aside.end?.(closed);
    this.#afterAside = !text;
    if (text) this.push(text);
  }

  #show(type, text) {
    if (!text) return;
    this.parts[type] += text;
    this.#emit({ type, text });
  }
}

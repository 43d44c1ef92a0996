// SPDX-License-Identifier: MIT
// Turns the tokens of a reply into text: separates text from channels such as thinking, finds the stop text that ends
// the reply, and holds text back until it is known to be neither a mark nor a stop text. The result does not depend on
// the pieces in which the text arrives.

/**
 * A part of a reply that is not text. open, close: the marks around it, as texts or as their ids in the vocabulary.
 * type: type of its events, and its name in the result. begin: makes an Aside that takes its pieces, and finally tells
 * which of them were text after all (calls.js). gap: newlines before it that do not belong to the text. bare: it has no
 * marks, but is a whole reply that begins like this text, white space apart; open and close are then -1.
 * @typedef {{open: any, close: any, type: string, gap?: string, bare?: string, begin?: (emit: (event: object) => void,
 *   parts: object) => Aside}} Channel
 */

/**
 * A gap followed by this is used as a stop text. No text contains it, so it only makes the filter hold newlines back,
 * which are dropped if a channel follows.
 */
const NEVER = '\ud800';

/** Removes newlines from the end of a text, at most as many as the gap has. */
function withoutGap(text, gap) {
  let end = text.length;
  while (text.length - end < gap.length && text[end - 1] === '\n') end--;
  return text.slice(0, end);
}

/** Finds the first stop text in a growing text. It holds back an end that may become a stop text. */
export class StopFilter {
  #stops;
  #held = '';

  constructor(stops) {
    this.#stops = stops;
  }

  /**
   * @returns {{text: string, stopped?: string}} text that is safe to show; with `stopped`, the stop text, no more
   *   follows
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

  /** Returns the rest when the text has ended. */
  end() {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /**
   * The stop text that would be complete first if the text came letter by letter; among several the longest. Also tells
   * where it starts.
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

  /** Length of the longest end of the text that is a beginning of a stop text. */
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

/** Removes newlines from the start of a text and white space from its end. */
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
 * The text of an open channel. push() returns the part to show; end() returns the part that was text after all.
 * @typedef {{push: (piece: string) => string, end?: (closed: boolean) => string}} Aside
 */

/**
 * Separates the channels of a reply. A channel begins and ends with a token each, which are recognised by their ids:
 * the same letters in other tokens are text.
 */
export class ReplyText {
  #channels;
  #emit;
  #filter;
  #channel = null;        // the open channel; null: in the text
  /** @type {Aside} */
  #aside;
  #afterAside = false;
  #stopped = false;
  #bare;                  // a channel without marks, while the reply may be one
  #begun = '';            // the text until that is known
  /**
   * The parts of the result so far, by type, and the stop text that has ended the reply.
   * @type {{text: string, thinking: string, toolCalls: object[], unfinishedCall?: object, stopText?: string}}
   */
  parts = { text: '', thinking: '', toolCalls: [] };

  /**
   * @param {object} options
   * @param {Channel[]} options.channels of the model, with the ids of their marks
   * @param {Channel | null} options.inside the channel that the prompt has opened
   * @param {string[]} options.stops
   * @param {(event: object) => void} options.emit
   */
  constructor({ channels, inside, stops, emit }) {
    this.#channels = channels;
    this.#emit = emit;
    this.#filter = new StopFilter([...stops, ...channels.filter(({ gap }) => gap).map(({ gap }) => gap + NEVER)]);
    this.#bare = channels.find(({ bare }) => bare);
    if (inside) this.#enter(inside);
  }

  /** Takes a token if it is a mark. @returns {boolean} whether it is one; a mark's letters are never shown */
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

  /** The open channel; null: what comes is text. */
  get channel() { return this.#channel; }

  /** @returns {boolean} whether a stop text has ended the reply */
  push(piece) {
    if (this.#stopped) return true;
    if (this.#channel) {
      this.#show(this.#channel.type, this.#aside.push(piece));
      return false;
    }
    const fresh = this.#afterAside ? piece.replace(/^\n+/, '') : piece;
    if (fresh) this.#afterAside = false;
    return this.#bare ? this.#compare(fresh) : this.#pass(fresh);
  }

  /** Holds a text back that may be a channel without marks. */
  #compare(piece) {
    const { bare } = this.#bare;
    this.#begun += piece;
    const dense = this.#begun.replace(/\s+/g, '');
    if (dense.length < bare.length && bare.startsWith(dense)) return false;
    const [channel, begun] = [dense.startsWith(bare) && this.#bare, this.#begun];
    this.#bare = null;
    if (!channel) return this.#pass(begun);
    this.#enter(channel);
    return this.push(begun);
  }

  #pass(fresh) {
    const { text, stopped } = this.#filter.push(fresh);
    this.#show('text', text);
    if (stopped) this.parts.stopText = stopped;
    return this.#stopped = Boolean(stopped);
  }

  /** Ends the reply and shows the text held back. */
  end() {
    if (this.#bare) this.#pass(this.#begun);
    this.#bare = null;
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

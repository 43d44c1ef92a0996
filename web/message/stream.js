// SPDX-License-Identifier: MIT
// Shows a growing markdown text, at most ten times a second, in time proportional to what is new. The text is split
// into blocks. What stands before a blank line is settled once the first line of the block after it is complete:
// nothing later can change it then. Only the unsettled tail is split and built again. Settling looks at the text
// alone, never at how it arrived, so a text in one piece and the same text in crumbs end as the same nodes.
// No block may grow without bound: an overlong one is cut at a line, again by its text alone.
import { block, fill } from './markdown.js';
import { MAX_BLOCK, blocks } from './tokens.js';

/** Longest block of code, in characters. It is cheap (its text node only grows), the rest is built again each frame. */
const MAX_CODE = 32768;

const limitOf = ({ type }) => (type === 'code' || type === 'cut' ? MAX_CODE : MAX_BLOCK);

/**
 * Characters looked at in one step, and then at a time of a block of code that goes on; must exceed the longest block
 * of anything else.
 */
const WINDOW = 2 * MAX_BLOCK;

/** From this length on, blocks out of sight are not laid out (style-chat.css). */
const LONG = 100_000;

/** Time one frame may spend here, in ms; what is left waits for the next. */
const BUDGET = 8;

/**
 * Milliseconds between two times that text is shown: a browser's layout takes as long for one token as for three, and
 * nobody reads faster.
 */
const PACE_MS = 100;

/** The beginning that is repeated in the second part of a cut block: a code block's fence line, a table's head. */
const REOPEN = { code: /^ {0,3}(?:`{3,}|~{3,})[^\n]*\n/, table: /^[^\n]*\n[^\n]*\n/ };

/** Longest beginning that is repeated. */
const MAX_REOPEN = 1024;

/**
 * Where to cut a block that exceeds `limit` characters: before the last unindented line of the first `limit`, else
 * before the last line, but not in their first half (a cut must get forward); else right there.
 */
function cutPoint(raw, limit) {
  const last = raw.lastIndexOf('\n', limit - 1);
  for (let end = last; end >= limit / 2; end = raw.lastIndexOf('\n', end - 1)) {
    if (/\S/.test(raw[end + 1])) return end + 1;
  }
  if (last >= limit / 2) return last + 1;
  return /[\ud800-\udbff]/.test(raw[limit - 1]) ? limit - 1 : limit;
}

export class MarkdownStream {
  #container;
  #text = '';
  #offset = 0;     // start of the unsettled tail in #text
  #reopen = '';    // put before the tail after a cut (REOPEN)
  #tail = [];      // parts of the unsettled blocks, in order (fill)
  #headings = [];  // those that the tail stands under (blocks)
  #held = '';      // a "\r" at the end, until what follows it is known
  #waiting = false;
  #notBefore = 0;  // a slow frame is followed by as long a rest
  #last = 0;       // time of the last rendering
  #finished = null;

  /** @param {Element} container receives the block nodes */
  constructor(container) {
    this.#container = container;
  }

  get text() {
    return this.#text;
  }

  append(text) {
    const all = this.#held + text;
    // "\r\n" may arrive in two pieces.
    this.#held = all.endsWith('\r') ? '\r' : '';
    this.#text += all.slice(0, all.length - this.#held.length).replace(/\r\n?/g, '\n');
    this.#schedule();
  }

  /** Settles everything; resolves when it is all shown. */
  finish() {
    if (this.#held) this.#text += '\n';
    this.#held = '';
    return new Promise((done) => {
      this.#finished = done;
      this.#render();
    });
  }

  /** Renders now if that is due. @param {number} [pace] ms since the last time */
  #schedule(pace = PACE_MS) {
    if (this.#waiting) return;
    const due = Math.max(this.#notBefore, this.#last + pace) - performance.now();
    if (due <= 0 && pace && this.#container.isConnected) {
      this.#render();
      return;
    }
    this.#waiting = true;
    const run = () => {
      this.#waiting = false;
      this.#render();
    };
    if (due > 0 || document.hidden) setTimeout(run, Math.max(due, 0));
    else requestAnimationFrame(run);
  }

  #render() {
    const start = performance.now();
    let more = true;
    while (more && performance.now() - start < BUDGET) more = this.#step();
    const end = this.#last = performance.now();
    this.#notBefore = end - start > BUDGET ? end + (end - start) : 0;
    if (more) this.#schedule(0);
    else this.#finished?.();
  }

  /** Builds the tail's first window and settles what is settled there. @returns {boolean} whether text is left */
  #step() {
    const { window, found, last } = this.#look(WINDOW);
    const tokens = this.#bounded(found);
    const settled = last && this.#finished ? tokens.length : settledCount(tokens, window, last);
    fill(this.#container, tokens, block, this.#tail);
    if (this.#text.length > LONG) this.#container.classList.add('long');
    for (const token of tokens.slice(0, settled)) this.#settle(token);
    if (tokens.cut) this.#reopen = tokens.reopen;
    return this.#offset < this.#text.length && (!last || Boolean(tokens.cut || this.#finished));
  }

  /**
   * The tail's first characters, and all of the code that begins there: a wider window for everything would take its
   * time squared.
   */
  #look(reach) {
    const window = this.#reopen + this.#text.slice(this.#offset, this.#offset + reach);
    const last = this.#offset + reach >= this.#text.length;
    const found = blocks(window, this.#headings);
    const goesOn = !last && found.length === 1 && found[0].type === 'code' && window.length <= MAX_CODE;
    return goesOn ? this.#look(reach + WINDOW) : { window, found, last };
  }

  /** The tokens up to an overlong one, which is cut: what follows the cut belongs to the next step. */
  #bounded(tokens) {
    const at = tokens.findIndex((token) => token.raw.length > limitOf(token));
    if (at < 0) return tokens;
    const { raw, type } = tokens[at];
    const end = cutPoint(raw, limitOf(tokens[at]));
    const head = blocks(raw.slice(0, end), this.#headings);
    const kept = [...tokens.slice(0, at), ...head];
    const start = REOPEN[type]?.exec(raw)?.[0] ?? '';
    kept.cut = true;
    kept.reopen = start.length <= MAX_REOPEN ? start : '';
    return kept;
  }

  #settle(token) {
    this.#offset += token.raw.length - this.#reopen.length;
    this.#reopen = '';
    this.#headings = token.headings ?? this.#headings;
    this.#tail.shift();
  }
}

/**
 * How many leading tokens nothing later can change: those before the last blank line that is followed by a complete
 * line. A full window without one is settled up to its last token, for there must be an end.
 */
function settledCount(tokens, text, last) {
  if (tokens.cut) return tokens.length;
  let start = text.length;
  for (let i = tokens.length - 1; i > 0; i--) {
    start -= tokens[i].raw.length;
    if (tokens[i].type !== 'space' && text.startsWith('\n\n', start - 2) && text.indexOf('\n', start) >= 0) return i;
  }
  return last ? 0 : tokens.length - 1;
}

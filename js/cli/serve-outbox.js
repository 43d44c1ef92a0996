// SPDX-License-Identifier: MIT
// Counts the bytes of answers that clients have not taken yet. The maker of an answer waits for room before it makes
// more, so each answer holds little. A connection ends if its client takes less than the lowest rate while data waits
// for it, or if it has stopped reading while all answers together hold too much.

import { retryHeaders } from '../facades/openai-error.js';
import { refusal } from './serve-refusal.js';

/**
 * Bytes taken early count for later time, up to this many times slowMs, because operating systems take a megabyte at
 * once and then wait.
 */
const BURST = 6;

/** A client that has taken nothing for this long has stopped reading. */
const STALLED_MS = 1000;

/** The outbox of one answer. */
class Outbox {
  #all;
  #response;
  #waiting = [];      // makers that wait for room: each with a limit and a function to call
  #isOver = false;

  /** Bytes that have not been sent, and bytes held to make more of the answer. */
  unsent = 0;
  held = 0;

  taken = 0;          // bytes since the last look
  since = 0;          // time of the last look
  patience = 0;       // milliseconds left
  moved = 0;          // when the client last took something, or something began to wait

  /** @param {Outboxes} all @param {import('node:http').ServerResponse} response */
  constructor(all, response) {
    this.#all = all;
    this.#response = response;
    this.socket = response.req.socket;      // behind other answers of the connection, the response has no socket yet
    response.once('close', () => this.end());
  }

  /** @param {string} text */
  write(text) {
    if (this.isOver || text === '') return;
    const bytes = Buffer.from(text);
    if (this.unsent === 0) this.moved = this.#all.now();
    this.#add('unsent', bytes.length);
    this.#response.write(bytes, () => this.#took(bytes.length));
  }

  /** Counts bytes as held until the answer has ended. Throws if there is no room for them. */
  hold(bytes) {
    if (this.isOver) return;
    this.#add('held', bytes);
    if (!this.#all.isFull) return;
    this.#add('held', -bytes);
    throw refusal(429, 'Answers that clients do not read fill the memory for answers.', { headers: retryHeaders(1) });
  }

  /**
   * Waits for room.
   * @param {number} most unsent bytes at the end
   * @returns {Promise<void>} resolves also if the connection ends
   */
  room(most) {
    if (this.isOver || this.unsent <= most) return Promise.resolve();
    return new Promise((resolve) => { this.#waiting.push({ most, resolve }); });
  }

  get isOver() { return this.#isOver || this.socket.destroyed; }

  /** Whether the client could take data now: no other answer of the connection comes first. */
  get isOwed() { return Boolean(this.#response.socket) && this.unsent > 0; }

  /** Releases everything. */
  end() {
    if (this.#isOver) return;
    this.#isOver = true;
    const bytes = this.unsent + this.held;
    this.unsent = 0;
    this.held = 0;
    this.#all.add(this, -bytes);
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #add(kind, bytes) {
    this[kind] += bytes;
    this.#all.add(this, bytes);
  }

  #took(bytes) {
    if (this.#isOver) return;
    this.taken += bytes;
    this.moved = this.#all.now();
    this.#add('unsent', -bytes);
    this.#waiting = this.#waiting.filter(({ most, resolve }) => this.unsent > most || resolve());
  }
}

export class Outboxes {
  #limits;
  #letGo;
  now;
  #busy = new Set();        // outboxes that hold something
  #bytes = 0;

  /**
   * @param {{unsentOfAll: number, slowMs: number, rate: number}} limits in bytes; ms without taking anything; bytes per
   *   second
   * @param {{letGo: (why: 'slow' | 'full') => void, now?: () => number}} how letGo: called for each connection that is
   *   ended
   */
  constructor(limits, { letGo, now = () => performance.now() }) {
    this.#limits = limits;
    this.#letGo = letGo;
    this.now = now;
  }

  /** Bytes of all answers. */
  get bytes() { return this.#bytes; }

  get isFull() { return this.#bytes > this.#limits.unsentOfAll; }

  of(response) { return new Outbox(this, response); }

  /** Changes the bytes that an outbox holds. @param {Outbox} outbox */
  add(outbox, bytes) {
    this.#bytes += bytes;
    if (outbox.unsent + outbox.held === 0) this.#busy.delete(outbox);
    else if (!this.#busy.has(outbox)) {
      this.#busy.add(outbox);
      this.#begin(outbox);
    }
    for (let socket; this.#bytes > this.#limits.unsentOfAll && (socket = this.#stalled());) this.#end(socket, 'full');
  }

  /** Ends connections whose time is used up. Called about each second. */
  look() {
    const { slowMs, rate } = this.#limits;
    const now = this.now();
    for (const outbox of this.#busy) {
      const left = outbox.patience - (now - outbox.since) + (outbox.taken * 1000) / rate;
      if (outbox.isOwed && left < 0) this.#end(outbox.socket, 'slow');
      else this.#begin(outbox, outbox.isOwed ? Math.min(left, BURST * slowMs) : slowMs);
    }
  }

  /** Releases the answers of a connection that has ended. */
  close(socket) {
    for (const outbox of this.#busy) if (outbox.socket === socket) outbox.end();
  }

  #begin(outbox, patience = this.#limits.slowMs) {
    outbox.taken = 0;
    outbox.since = this.now();
    outbox.patience = patience;
  }

  /** The connection with the most bytes times milliseconds held since it stopped reading; undefined: none stopped. */
  #stalled() {
    const now = this.now();
    const sums = new Map();
    for (const { socket, unsent, held, moved, isOwed } of this.#busy) {
      const ms = isOwed ? now - moved : 0;
      if (ms >= STALLED_MS) sums.set(socket, (sums.get(socket) ?? 0) + (unsent + held) * ms);
    }
    return [...sums].toSorted(([, one], [, other]) => other - one)[0]?.[0];
  }

  #end(socket, why) {
    this.#letGo(why);
    this.close(socket);
    socket.destroy();
  }
}

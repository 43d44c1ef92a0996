// SPDX-License-Identifier: MIT
// What clients have not taken yet of their answers. Whoever makes an answer waits for room before he makes more of it,
// so that each holds a little; a connection that takes less than the lowest rate while something waits for it is let
// go, and so is one that has stopped reading where all of them together hold too much.

import { retryHeaders } from '../facades/openai-error.js';
import { refusal } from './serve-refusal.js';

/**
 * What is taken at once counts for the time after it, for so many times that of who takes nothing: systems take a
 * megabyte and then wait.
 */
const BURST = 6;

/** Who has taken nothing for so long has stopped reading. */
const STALLED_MS = 1000;

/** Of an answer. */
class Outbox {
  #all;
  #response;
  #waiting = [];      // for room: each a limit, and what is called
  #isOver = false;

  /** Bytes that have not gone out, and those that are held so that more can be made of them. */
  unsent = 0;
  held = 0;

  taken = 0;          // bytes since the last look, which was at that time
  since = 0;
  patience = 0;       // milliseconds it has left
  moved = 0;          // when something was taken last, or began to wait for that

  /** @param {Outboxes} all @param {import('node:http').ServerResponse} response */
  constructor(all, response) {
    this.#all = all;
    this.#response = response;
    this.socket = response.req.socket;      // behind other answers on it, the response has none yet
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

  /**
   * So many bytes are held for what is still to be written, until the answer has ended. Throws where there is no room
   * for them.
   */
  hold(bytes) {
    if (this.isOver) return;
    this.#add('held', bytes);
    if (!this.#all.isFull) return;
    this.#add('held', -bytes);
    throw refusal(429, 'Answers that are not taken leave no room for more.', { headers: retryHeaders(1) });
  }

  /** @param {number} most bytes that may wait then @returns {Promise<void>} also once the connection is gone */
  room(most) {
    if (this.isOver || this.unsent <= most) return Promise.resolve();
    return new Promise((resolve) => { this.#waiting.push({ most, resolve }); });
  }

  get isOver() { return this.#isOver || this.socket.destroyed; }

  /** Whether the connection could take some of it: not behind another answer that is being made. */
  get isOwed() { return Boolean(this.#response.socket) && this.unsent > 0; }

  /** Nothing is held any more. */
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
  #busy = new Set();        // those that hold something
  #bytes = 0;

  /**
   * @param {{unsentOfAll: number, slowMs: number, rate: number}} limits bytes; how long a connection may take nothing;
   *   bytes a second
   * @param {{letGo: (why: 'slow' | 'full') => void, now?: () => number}} how letGo: is told of each
   */
  constructor(limits, { letGo, now = () => performance.now() }) {
    this.#limits = limits;
    this.#letGo = letGo;
    this.now = now;
  }

  /** Of all answers. */
  get bytes() { return this.#bytes; }

  get isFull() { return this.#bytes > this.#limits.unsentOfAll; }

  of(response) { return new Outbox(this, response); }

  /** @param {Outbox} outbox that holds so many more */
  add(outbox, bytes) {
    this.#bytes += bytes;
    if (outbox.unsent + outbox.held === 0) this.#busy.delete(outbox);
    else if (!this.#busy.has(outbox)) {
      this.#busy.add(outbox);
      this.#begin(outbox);
    }
    for (let socket; this.#bytes > this.#limits.unsentOfAll && (socket = this.#stalled());) this.#end(socket, 'full');
  }

  /** Lets go who has had his time. To be called about each second. */
  look() {
    const { slowMs, rate } = this.#limits;
    const now = this.now();
    for (const outbox of this.#busy) {
      const left = outbox.patience - (now - outbox.since) + (outbox.taken * 1000) / rate;
      if (outbox.isOwed && left < 0) this.#end(outbox.socket, 'slow');
      else this.#begin(outbox, outbox.isOwed ? Math.min(left, BURST * slowMs) : slowMs);
    }
  }

  /** A connection has ended. */
  close(socket) {
    for (const outbox of this.#busy) if (outbox.socket === socket) outbox.end();
  }

  #begin(outbox, patience = this.#limits.slowMs) {
    outbox.taken = 0;
    outbox.since = this.now();
    outbox.patience = patience;
  }

  /** The connection that has held the most for the longest time without taking any of it; undefined: all take. */
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

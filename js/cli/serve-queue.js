// SPDX-License-Identifier: MIT
// Who waits before anything is made for him. So many replies are under way as the engine makes side by side, and a few more, so that it never wants
// for one; all others wait here, where one costs the bytes of its body and no work. Places go to the key that has the fewest, then to the connection
// that has, then to who came first. Lists of texts, and replies in the background, have places of their own, behind those of replies.

import { retryHeaders } from '../facades/openai-error.js';
import { refusal } from './serve-refusal.js';

/** Sequences that the engine takes beside those that it computes, and how many of them in the background (worker/runner.js). */
const BESIDE = 64;
const BESIDE_BEHIND = 32;

/** Seconds after which clients repeat by what they are told; those of the official client wait no longer than a minute. */
const MOST_SECONDS = 60;

/** What is taken for the time of a reply until one has ended; then the share of each further one in it. */
const FIRST_MS = 1000;
const SHARE = 0.2;

/** Whether the first numbers that differ are less. @param {number[]} a @param {number[]} b */
function isLess(a, b) {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && a[at] < b[at];
}

/**
 * @typedef {object} Place
 * @property {Promise<void> | null} turn when it comes; null: it has. It rejects when the server ends, and when who waits has left
 * @property {() => void} leave it; also while it is waited for
 */

export class Queue {
  #most;
  #parallel;
  #observe;
  #now;
  #waiting = [];              // in the order of their arrival
  #keys = new Map();          // key -> {running, last}: replies under way, and when it was let in last
  #sockets = new WeakMap();   // the same of a connection
  #running = [0, 0];          // replies under way; those behind
  #turns = 0;
  #ms;                        // that a reply takes, from its place on; undefined: none has ended

  /**
   * @param {{most?: number, parallel: () => number, observe?: (seconds: number) => void, now?: () => number}} options most: who may wait;
   *   parallel: replies that the engine makes side by side; observe: is told how long each has waited
   */
  constructor({ most = 512, parallel, observe = () => {}, now = () => performance.now() }) {
    this.#most = most;
    this.#parallel = parallel;
    this.#observe = observe;
    this.#now = now;
  }

  /** Who waits. */
  get size() { return this.#waiting.length; }

  /**
   * A place, or a wait for one. Throws what tells a client to come again where too many wait.
   * @param {{key: number, socket: object, weight?: number, isBehind?: boolean}} who weight: replies that it makes at once
   * @returns {Place}
   */
  enter({ key, socket, weight = 1, isBehind = false }) {
    const parallel = this.#parallel();
    const most = isBehind ? 2 * parallel : BESIDE;      // a list is worked at in parts of that size
    const ticket = {
      key, socket, isBehind, weight: Math.max(1, Math.min(weight, most)), arrived: this.#now(), begun: null, turn: null, settle: null,
      leave: () => this.#leave(ticket),
    };
    this.#waiting.push(ticket);
    this.#letIn();
    if (ticket.begun !== null) return ticket;
    if (this.#waiting.length > this.#most) {
      this.#waiting.pop();
      throw this.#refusal();
    }
    ticket.turn = new Promise((resolve, reject) => { ticket.settle = { resolve, reject }; });
    ticket.turn.catch(() => {});
    return ticket;
  }

  /** Seconds until what waits now has had its turn, as far as that can be told. */
  retryAfter() {
    const waiting = this.#waiting.reduce((sum, { weight }) => sum + weight, 0);
    const running = Math.max(1, this.#running[0] + this.#running[1]);
    return Math.max(1, Math.min(MOST_SECONDS, Math.ceil((waiting * (this.#ms ?? FIRST_MS)) / running / 1000)));
  }

  /** Sends everybody away who waits. @param {Error} reason */
  end(reason) {
    for (const { settle } of this.#waiting.splice(0)) settle.reject(reason);
  }

  #refusal() {
    const message = `${this.#waiting.length} requests wait already, which is as many as may (--queue).`;
    return refusal(429, message, { headers: retryHeaders(this.retryAfter()) });
  }

  #leave(ticket) {
    const at = this.#waiting.indexOf(ticket);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      ticket.settle.reject(refusal(499, 'Whoever asked has gone.'));
    } else if (ticket.begun !== null) {
      this.#free(ticket);
    }
    this.#letIn();
  }

  #free(ticket) {
    const { key, socket, isBehind, weight, begun } = ticket;
    const ms = this.#now() - begun;
    this.#ms = this.#ms === undefined ? ms : this.#ms + SHARE * (ms - this.#ms);
    ticket.begun = null;
    this.#running[Number(isBehind)] -= weight;
    for (const lane of [this.#laneOf(this.#keys, key), this.#laneOf(this.#sockets, socket)]) lane.running -= weight;
  }

  #laneOf(lanes, name) {
    const lane = lanes.get(name) ?? { running: 0, last: 0 };
    lanes.set(name, lane);
    return lane;
  }

  #letIn() {
    for (const isBehind of [false, true]) {
      while (this.#hasPlace(isBehind)) {
        const next = this.#next(isBehind);
        if (!next) break;
        if (!this.#fits(next)) return;      // nobody overtakes it
        this.#admit(next);
      }
    }
  }

  /** Whose turn it is. */
  #next(isBehind) {
    let best = null;
    for (const ticket of this.#waiting) {
      const rank = this.#rankOf(ticket);
      if (ticket.isBehind === isBehind && (!best || isLess(rank, best.rank))) best = { ticket, rank };
    }
    return best?.ticket;
  }

  /** The least comes first, of equals who came first. */
  #rankOf({ key, socket }) {
    const { running, last } = this.#laneOf(this.#keys, key);
    return [running, last, this.#laneOf(this.#sockets, socket).running];
  }

  /** A few more than the engine makes: the next one begins in the step after which another has ended. */
  #hasPlace(isBehind) {
    const parallel = this.#parallel();
    return this.#running[Number(isBehind)] < parallel + Math.ceil(parallel / 4);
  }

  #fits({ isBehind, weight }) {
    const [replies, behind] = this.#running;
    const parallel = this.#parallel();
    return replies + behind + weight <= parallel + BESIDE && (!isBehind || behind + weight <= parallel + BESIDE_BEHIND);
  }

  #admit(ticket) {
    const { key, socket, isBehind, weight, settle } = ticket;
    this.#waiting.splice(this.#waiting.indexOf(ticket), 1);
    this.#running[Number(isBehind)] += weight;
    for (const lane of [this.#laneOf(this.#keys, key), this.#laneOf(this.#sockets, socket)]) {
      lane.running += weight;
      lane.last = ++this.#turns;
    }
    ticket.begun = this.#now();
    this.#observe((ticket.begun - ticket.arrived) / 1000);
    settle?.resolve();
  }
}

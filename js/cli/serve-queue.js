// SPDX-License-Identifier: MIT
// Who waits before anything is made for him. So many replies are under way as the engine makes side by side, and a few
// more, so that it never wants for one; all others wait here, where one costs the bytes of its body and no work. Places
// go to the key that has the fewest, then to the one that has held them for the shortest time of late, then to the
// connection that has, then to who came first. Lists of texts and replies in the background have places of their own,
// behind those of replies, and so has what wants no reply (tokens of a text). Nobody has all places with what is
// prepared.

import { retryHeaders } from '../facades/openai-error.js';
import { WAITING, WAITING_BEHIND } from '../shared/waiting.js';
import { Account } from '../worker/shares.js';
import { refusal } from './serve-refusal.js';

/** Of what wants no reply: so many at once, and so many of one key, or of a connection without. */
const ASKS = 4;
const OWN_ASKS = 2;

/**
 * Bytes of a request from which on two of them that the model has not begun with are as many as one key, or one
 * connection without, may have.
 */
const HEAVY = 2 ** 16;

/**
 * Seconds after which clients repeat by what they are told; those of the official client wait no longer than a minute.
 */
const MOST_SECONDS = 60;

/** What is taken for the time of a reply until one has ended; then the share of each further one in it. */
const FIRST_MS = 1000;
const SHARE = 0.2;

/** Places of a key, or of a connection. */
class Lane {
  waiting = 0;
  asked = -Infinity;    // when it did so last
  running = 0;
  asks = 0;
  unbegun = 0;      // part of what may be prepared at once
  account = new Account();
}

/**
 * Keys that have asked in so many milliseconds are there; those that have done so in so many are busy, whether they
 * have a place or not.
 */
const OTHERS_MS = 60_000;
const BUSY_MS = 2000;

const isBusy = ({ running, waiting, asked }, now) => running > 0 || waiting > 0 || asked > now - BUSY_MS;

/** Whether the first numbers that differ are less. @param {number[]} a @param {number[]} b */
function isLess(a, b) {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && a[at] < b[at];
}

/**
 * @typedef {object} Asker who asks
 * @property {number} key 0: none is needed
 * @property {number} guest the number of his connection
 * @property {import('node:net').Socket} socket
 * @property {import('./serve-body.js').Body} body that he has sent
 * @property {<T>(work: () => T) => Promise<Awaited<T>>} turn does what takes this thread some milliseconds, when it is
 *   his turn
 * @property {(end: () => void) => void} whenGone what then ends
 */

/**
 * @typedef {object} Place
 * @property {Promise<void> | null} turn when it comes; null: it has. It rejects when the server ends, and when who
 *   waits has left
 * @property {boolean} isWaiting
 * @property {() => void} begin the model has begun
 * @property {() => void} leave it; also while it is waited for
 */

export class Queue {
  #most;
  #parallel;
  #observe;
  #now;
  #waiting = [];              // in the order of their arrival
  #keys = new Map();          // key -> Lane
  #sockets = new WeakMap();   // the same of a connection
  #running = { reply: 0, behind: 0, ask: 0 };
  #ms = {};                   // that one of a kind takes, from its place on; undefined: none has ended

  /**
   * @param {{most?: number, parallel: () => number, observe?: (seconds: number) => void, now?: () => number}} options
   *   most: who may wait; parallel: replies that the engine makes side by side; observe: is told how long each has
   *   waited
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
   * @param {{key: number, socket: object, weight?: number, kind?: 'reply' | 'behind' | 'ask', bytes?: number}} who
   *   weight: replies that it makes at once; bytes: of its request
   * @returns {Place}
   */
  enter({ key, socket, weight = 1, kind = 'reply', bytes = 0 }) {
    const most = kind === 'behind' ? 2 * this.#parallel() : WAITING;      // a list is worked at in parts of that size
    const ticket = {
      kind,
      weight: Math.max(1, Math.min(weight, most)),
      lanes: [this.#laneOf(this.#keys, key), this.#laneOf(this.#sockets, socket)],
      isKeyed: key > 0,
      part: 1 / (bytes > HEAVY ? 2 : Math.max(2, Math.ceil(this.#places / 2))),
      isPrepared: false,
      isWaiting: true,
      arrived: this.#now(),
      begun: null,
      turn: null,
      settle: null,
      begin: () => this.#prepared(ticket),
      leave: () => this.#leave(ticket),
    };
    for (const lane of ticket.lanes) lane.asked = ticket.arrived;
    this.#wait(ticket);
    if (ticket.begun !== null) return ticket;
    ticket.turn = new Promise((resolve, reject) => { ticket.settle = { resolve, reject }; });
    ticket.turn.catch(() => {});
    if (this.#waiting.length > this.#most) this.#sendAway(ticket);
    return ticket;
  }

  /**
   * Seconds until what waits now has had its turn, as far as that can be told.
   * @param {'reply' | 'behind' | 'ask'} [kind]
   */
  retryAfter(kind = 'reply') {
    const isAsk = kind === 'ask';
    const waiting = this.#waiting.reduce((sum, one) => sum + ((one.kind === 'ask') === isAsk ? one.weight : 0), 0);
    const running = Math.max(1, isAsk ? this.#running.ask : this.#running.reply + this.#running.behind);
    return Math.max(
      1,
      Math.min(MOST_SECONDS, Math.ceil((waiting * (this.#ms[isAsk ? 'ask' : 'reply'] ?? FIRST_MS)) / running / 1000)),
    );
  }

  /** Sends everybody away who waits. @param {Error} reason */
  end(reason) {
    while (this.#waiting.length) this.#takeOut(this.#waiting[0]).settle.reject(reason);
  }

  // --- who waits ---

  #laneOf(lanes, name) {
    const lane = lanes.get(name) ?? new Lane();
    lanes.set(name, lane);
    return lane;
  }

  #wait(ticket) {
    this.#waiting.push(ticket);
    for (const lane of ticket.lanes) lane.waiting++;
    this.#letIn();
  }

  #takeOut(ticket) {
    this.#waiting.splice(this.#waiting.indexOf(ticket), 1);
    ticket.isWaiting = false;
    for (const lane of ticket.lanes) lane.waiting--;
    return ticket;
  }

  /**
   * One more waits than may: of the key, then the connection, that has the most waiting, the last one goes. Throws
   * where that is the newcomer.
   */
  #sendAway(newcomer) {
    const rankOf = ({ lanes }) => lanes.map(({ waiting }) => waiting);
    const most = this.#waiting.reduce((last, one) => (isLess(rankOf(one), rankOf(last)) ? last : one), newcomer);
    const isMore = isLess(rankOf(newcomer), rankOf(most));
    const gone = this.#takeOut(isMore ? most : newcomer);
    const message = `${this.#waiting.length} requests wait already, which is as many as may (--queue).`;
    const reason = refusal(429, message, { headers: retryHeaders(this.retryAfter(gone.kind)) });
    if (!isMore) throw reason;
    gone.settle.reject(reason);
  }

  #leave(ticket) {
    if (ticket.isWaiting) this.#takeOut(ticket).settle.reject(refusal(499, 'Whoever asked has gone.'));
    else if (ticket.begun !== null) this.#free(ticket);
    this.#letIn();
  }

  // --- who has a place ---

  #admit(ticket) {
    const { kind, weight, lanes, part, settle } = this.#takeOut(ticket);
    this.#running[kind] += weight;
    for (const lane of lanes) {
      lane.running += weight;
      if (kind === 'ask') lane.asks++;
      if (kind === 'reply') lane.unbegun += part;
    }
    ticket.begun = this.#now();
    this.#observe((ticket.begun - ticket.arrived) / 1000);
    settle?.resolve();
  }

  /** The model has begun with it: what others wait for now is no longer its preparation. */
  #prepared(ticket) {
    if (ticket.isPrepared || ticket.begun === null) return;
    ticket.isPrepared = true;
    if (ticket.kind === 'reply') for (const lane of ticket.lanes) lane.unbegun -= ticket.part;
    this.#letIn();
  }

  #free(ticket) {
    const { kind, weight, lanes, begun } = ticket;
    const now = this.#now();
    const ms = now - begun;
    const before = this.#ms[kind];
    this.#ms[kind] = before === undefined ? ms : before + SHARE * (ms - before);
    this.#prepared(ticket);
    ticket.begun = null;
    this.#running[kind] -= weight;
    for (const lane of lanes) {
      lane.running -= weight;
      lane.account.charge(ms * weight, now);
      if (kind === 'ask') lane.asks--;
    }
  }

  // --- whose turn it is ---

  #letIn() {
    for (const kind of /** @type {const} */ (['ask', 'reply', 'behind'])) {
      while (this.#hasPlace(kind)) {
        const next = this.#next(kind);
        if (!next) break;
        if (!this.#fits(next)) return;      // nobody overtakes it
        this.#admit(next);
      }
    }
  }

  #next(kind) {
    let best = null;
    const now = this.#now();
    const own = this.#ownPlaces(now);
    for (const ticket of this.#waiting) {
      if (ticket.kind !== kind || !this.#mayHave(ticket, own)) continue;
      // of equals who came first
      const rank = ticket.lanes.flatMap(({ running, account }) => [running, account.used(now)]);
      if (!best || isLess(rank, best.rank)) best = { ticket, rank };
    }
    return best?.ticket;
  }

  /**
   * Whether a key, or a connection without, may have more of a kind.
   * @param {object} ticket
   * @param {number} most places of a key
   */
  #mayHave({ kind, lanes: [keyed, own], isKeyed, part, weight }, most) {
    const { asks, unbegun } = isKeyed ? keyed : own;
    if (kind === 'ask') return asks < OWN_ASKS;
    if (isKeyed && keyed.running > 0 && keyed.running + weight > most) return false;
    return kind !== 'reply' || unbegun === 0 || unbegun + part <= 1.001;
  }

  /**
   * Places that a key which waits may have. Replies side by side share the time of each step, so it has no more of them
   * than its share where others are busy. Where others have only asked of late, it leaves them a quarter of the places:
   * a newcomer need not wait until a long reply of somebody else's has ended.
   */
  #ownPlaces(now) {
    const parallel = this.#parallel();
    const there = [...this.#keys.values()].filter((lane) => isBusy(lane, now) || lane.asked > now - OTHERS_MS);
    if (there.length <= 1) return Infinity;
    const share = Math.ceil(this.#places / there.filter((lane) => isBusy(lane, now)).length);
    return Math.max(1, Math.min(share, parallel - Math.ceil(parallel / 4)));
  }

  /** A few more than the engine makes: the next one begins in the step after which another has ended. */
  get #places() {
    const parallel = this.#parallel();
    return parallel + Math.ceil(parallel / 4);
  }

  #hasPlace(kind) { return this.#running[kind] < (kind === 'ask' ? ASKS : this.#places); }

  #fits({ kind, weight }) {
    const { reply, behind } = this.#running;
    const parallel = this.#parallel();
    if (kind === 'ask') return true;
    return (
      reply + behind + weight <= parallel + WAITING &&
      (kind === 'reply' || behind + weight <= parallel + WAITING_BEHIND)
    );
  }
}

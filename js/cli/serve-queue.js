// SPDX-License-Identifier: MIT
// Decides which requests may begin. As many replies are under way as the engine makes side by side, and a few more, so
// that the engine never lacks work. All others wait here, where a request costs the bytes of its body and no work. The
// next place goes to the key with the fewest places, then to the key that has used the least time recently, then to the
// connection likewise, then to the request that came first. Lists of texts and replies in the background have places of
// their own, with lower priority; so do requests without a reply (tokens of a text). No client can occupy all places
// with requests whose replies have not begun.

import { retryHeaders } from '../facades/openai-error.js';
import { WAITING, WAITING_BEHIND } from '../shared/waiting.js';
import { Account } from '../worker/shares.js';
import { refusal } from './serve-refusal.js';

/** Most requests without a reply that run at once: in all, and of one key, or of one connection without a key. */
const ASKS = 4;
const OWN_ASKS = 2;

/**
 * Bytes above which a request is heavy. Of heavy requests that the model has not begun, one key, or one connection
 * without a key, may have two.
 */
const HEAVY = 2 ** 16;

/** Longest time that clients are told to wait. The official client does not wait longer than a minute. */
const MOST_SECONDS = 60;

/** Assumed time of a reply before one has ended; then the weight of each further reply in the average. */
const FIRST_MS = 1000;
const SHARE = 0.2;

/** The places of a key, or of a connection. */
class Lane {
  waiting = 0;
  asked = -Infinity;    // time of the last request
  running = 0;
  asks = 0;
  unbegun = 0;      // sum of the parts of replies that the model has not begun; 1 is the most
  account = new Account();
}

/**
 * A key counts as present for this time after its last request, and as busy if it has a place, waits, or made a request
 * within BUSY_MS.
 */
const OTHERS_MS = 60_000;
const BUSY_MS = 2000;

const isBusy = ({ running, waiting, asked }, now) => running > 0 || waiting > 0 || asked > now - BUSY_MS;

/** Compares two lists by the first numbers that differ. @param {number[]} a @param {number[]} b */
function isLess(a, b) {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && a[at] < b[at];
}

/**
 * @typedef {object} Asker the client of a request
 * @property {number} key 0 if no key is needed
 * @property {number} guest number of the connection
 * @property {import('node:net').Socket} socket
 * @property {import('./serve-body.js').Body} body of the request
 * @property {<T>(work: () => T) => Promise<Awaited<T>>} turn runs work of some milliseconds when the client's turn
 *   comes
 * @property {(end: () => void) => void} whenGone sets a function that is called if the connection ends
 */

/**
 * @typedef {object} Place
 * @property {Promise<void> | null} turn resolves when the place is there; null: it is there already. Rejects when the
 *   server ends, and when the client has gone
 * @property {boolean} isWaiting
 * @property {() => void} begin called when the model has begun
 * @property {() => void} leave gives up the place, or waiting for it
 */

export class Queue {
  #most;
  #parallel;
  #observe;
  #now;
  #waiting = [];              // in order of arrival
  #keys = new Map();          // key -> Lane
  #sockets = new WeakMap();   // connection -> Lane
  #running = { reply: 0, behind: 0, ask: 0 };
  #ms = {};                   // average time of one of each kind, from its place on; undefined: none has ended

  /**
   * @param {{most?: number, parallel: () => number, observe?: (seconds: number) => void, now?: () => number}} options
   *   most: requests that may wait; parallel: replies that the engine makes side by side; observe: gets the waiting
   *   time of each request
   */
  constructor({ most = 512, parallel, observe = () => {}, now = () => performance.now() }) {
    this.#most = most;
    this.#parallel = parallel;
    this.#observe = observe;
    this.#now = now;
  }

  /** Number of waiting requests. */
  get size() { return this.#waiting.length; }

  /**
   * Returns a place, or a wait for one. If too many wait, throws a refusal that tells the client when to come again.
   * @param {{key: number, socket: object, weight?: number, kind?: 'reply' | 'behind' | 'ask', bytes?: number}} who
   *   weight: number of replies that the request makes at once; bytes: size of the request
   * @returns {Place}
   */
  enter({ key, socket, weight = 1, kind = 'reply', bytes = 0 }) {
    const most = kind === 'behind' ? 2 * this.#parallel() : WAITING;      // a list is processed in parts of that size
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
   * Estimates the seconds until the requests that wait now have had their turns.
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

  /** Refuses all waiting requests. @param {Error} reason */
  end(reason) {
    while (this.#waiting.length) this.#takeOut(this.#waiting[0]).settle.reject(reason);
  }

  // --- waiting ---

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
   * Too many wait: refuses the last request of the key, then of the connection, with the most waiting ones. Throws if
   * that is the new request.
   */
  #sendAway(newcomer) {
    const rankOf = ({ lanes }) => lanes.map(({ waiting }) => waiting);
    const most = this.#waiting.reduce((last, one) => (isLess(rankOf(one), rankOf(last)) ? last : one), newcomer);
    const isMore = isLess(rankOf(newcomer), rankOf(most));
    const gone = this.#takeOut(isMore ? most : newcomer);
    const message = `${this.#waiting.length} requests are waiting already, the most that --queue allows.`;
    const reason = refusal(429, message, { headers: retryHeaders(this.retryAfter(gone.kind)) });
    if (!isMore) throw reason;
    gone.settle.reject(reason);
  }

  #leave(ticket) {
    if (ticket.isWaiting) this.#takeOut(ticket).settle.reject(refusal(499, 'The client has gone.'));
    else if (ticket.begun !== null) this.#free(ticket);
    this.#letIn();
  }

  // --- running ---

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

  /** Called when the model has begun with a request: its preparation is over. */
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

  // --- choosing the next ---

  #letIn() {
    for (const kind of /** @type {const} */ (['ask', 'reply', 'behind'])) {
      while (this.#hasPlace(kind)) {
        const next = this.#next(kind);
        if (!next) break;
        if (!this.#fits(next)) return;      // nothing overtakes it
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
      // among equals the first one wins
      const rank = ticket.lanes.flatMap(({ running, account }) => [running, account.used(now)]);
      if (!best || isLess(rank, best.rank)) best = { ticket, rank };
    }
    return best?.ticket;
  }

  /**
   * Whether a key, or a connection without a key, may have one more place of this kind.
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
   * Most places of one key. Replies side by side share the time of each step, so while other keys are busy a key gets
   * its share of the places. If others have only made requests recently, it leaves a quarter of the places free, so
   * that a new request need not wait for the end of somebody's long reply.
   */
  #ownPlaces(now) {
    const parallel = this.#parallel();
    const there = [...this.#keys.values()].filter((lane) => isBusy(lane, now) || lane.asked > now - OTHERS_MS);
    if (there.length <= 1) return Infinity;
    const share = Math.ceil(this.#places / there.filter((lane) => isBusy(lane, now)).length);
    return Math.max(1, Math.min(share, parallel - Math.ceil(parallel / 4)));
  }

  /**
   * Number of places, a few more than the engine uses: so the next reply begins in the step after another has ended.
   */
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

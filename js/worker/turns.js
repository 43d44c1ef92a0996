// SPDX-License-Identifier: MIT
// Whose turn it is beside the model's steps. Tokens of texts, prompts of conversations, pixels: such work is cut into
// slices of some milliseconds, and between two slices the worker looks at its messages. While replies are made, slices
// together take a fifth of the time of the steps, and less where more guests have replies than wait for slices: who
// wants many slices slows the replies of others by no more than his part. Otherwise slices follow each other. Among
// those who wait comes first who has used the least time of late: among the scopes (keys), then among a scope's guests
// (connections). Used time is forgotten by and by, and time waited makes up for it, so nobody waits for ever, whoever
// else comes.

import { Account, accountOf } from './shares.js';

/** Longest slice, and the time that slices take of steps. */
const SLICE_MS = 5;
const SHARE = 1 / 5;

/** Slices have that much beside each step, however short it is: nobody notices it. */
const LEAST_MS = 0.5;

/**
 * What a guest has asked for first comes first, until it has taken so long; then what he asked for later goes on beside
 * it.
 */
const SOON_MS = 250;

/** @typedef {import('./shares.js').Owner} Owner */

class Guest extends Account {
  queue = [];

  take() {
    const levelOf = ({ job: { used } }) => Math.floor(used / SOON_MS);
    const next = this.queue.reduce((a, b) => (levelOf(a) - levelOf(b) || a.job.order - b.job.order) <= 0 ? a : b);
    this.queue.splice(this.queue.indexOf(next), 1);
    return next;
  }
}

class Scope extends Account {
  /** @type {Map<number, Guest>} */
  guests = new Map();
}

/** Who comes first of those who wait. */
function first(accounts, now) {
  let best = null;
  for (const account of accounts.values())
    if (account.waiting > 0 && (!best || account.rank(now) < best.rank(now))) best = account;
  return best;
}

export class Turns {
  #rest;
  #now;
  #scopes = new Map();
  #waiting = 0;
  #credit = 0;          // milliseconds that slices may take of the steps so far; less than 0 where one took longer
  #isLed = false;       // steps are made: slices come between them
  #serves = false;
  #isTaken = false;     // by what there may be only one of
  #others = [];         // who wait for that
  #dead = null;
  #jobs = new WeakMap();    // owner -> what he wants by this object: when it began, and the time that it has used
  #lastJob = 0;

  /**
   * @param {() => void | Promise<void>} rest lets waiting messages in
   * @param {() => number} [now] milliseconds
   */
  constructor(rest, now = () => performance.now()) {
    this.#rest = rest;
    this.#now = now;
  }

  /**
   * Does a slice of work when it is its turn. What it begins and does not wait for is its own affair: only what it does
   * at once counts.
   * @template T
   * @param {Owner} owner
   * @param {(ms: number) => T} work is told how long it may take
   * @returns {Promise<Awaited<T>>} what the work returns, or throws
   */
  run(owner, work) {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const now = this.#now();
      const { scope, guest } = this.#accountsOf(owner);
      guest.queue.push({ work, resolve, reject, job: this.#jobOf(owner) });
      scope.enter(now);
      guest.enter(now);
      this.#waiting++;
      this.#serve();
    });
  }

  /**
   * Takes all the steps of some work, as many in a slice as there is time for.
   * @template T
   * @param {Owner} owner
   * @param {Iterator<unknown, T, void>} steps of a millisecond or so each; is ended where they cannot be gone on with
   * @param {AbortSignal} [signal] after which nobody wants the rest of them
   * @returns {Promise<T>} what the last of them returns
   */
  async through(owner, steps, signal) {
    const some = (ms) => {
      signal?.throwIfAborted();
      const end = this.#now() + ms;
      let step;
      do step = steps.next(); while (!step.done && this.#now() < end);
      return step;
    };
    try {
      for (;;) {
        const { done, value } = await this.run(owner, some);
        if (done) return /** @type {T} */ (value);
      }
    } finally {
      steps.return?.();
    }
  }

  /**
   * Waits until nobody else does something of which there may be only one at a time; who has used the least time comes
   * first.
   * @param {Owner} owner
   * @returns {Promise<() => null>} to be called when it is over
   */
  async alone(owner) {
    if (this.#dead) throw this.#dead;
    if (this.#isTaken)
      await new Promise((resolve, reject) => {
        this.#others.push({ ...this.#accountsOf(owner), resolve, reject });
      });
    this.#isTaken = true;
    return () => {
      const now = this.#now();
      const order = this.#others.sort(
        (a, b) => a.scope.rank(now) - b.scope.rank(now) || a.guest.rank(now) - b.guest.rank(now),
      );
      this.#isTaken = order.length > 0;
      order.shift()?.resolve();
      return null;
    };
  }

  #accountsOf({ scope: key, guest: number }) {
    const now = this.#now();
    const scope = accountOf(this.#scopes, key, Scope, now);
    return { scope, guest: accountOf(scope.guests, number, Guest, now) };
  }

  #jobOf(owner) {
    if (!this.#jobs.has(owner)) this.#jobs.set(owner, { order: ++this.#lastJob, used: 0 });
    return this.#jobs.get(owner);
  }

  get isDead() { return this.#dead !== null; }

  /** How many guests are known. */
  get guests() { return [...this.#scopes.values()].reduce((sum, { guests }) => sum + guests.size, 0); }

  /** Steps are made from now on: slices come with after(), until there are no more. */
  begin() {
    this.#isLed = true;
    this.#credit = 0;
  }

  end() {
    this.#isLed = false;
    this.#serve();
  }

  /**
   * Between two steps, the first of which took that long: a look at the messages, and slices as far as they are due.
   * @param {number} ms
   * @param {number} [owners] guests who have replies
   */
  async after(ms, owners = 1) {
    let waiting = 0;
    for (const { guests } of this.#scopes.values())
      for (const guest of guests.values()) waiting += guest.waiting > 0 ? 1 : 0;
    this.#credit =
      Math.min(this.#credit, 0) + Math.max(LEAST_MS, ms * SHARE * Math.min(1, waiting / Math.max(1, owners)));
    do await this.#rest();
    while (this.#credit > 0 && this.#give(Math.min(SLICE_MS, this.#credit)));
  }

  /** The engine has crashed: nothing is done any more. */
  crash(error) {
    this.#dead ??= error;
    const queues = [...this.#scopes.values()].flatMap(({ guests }) => [...guests.values()].map(({ queue }) => queue));
    for (const { reject } of [...queues.flat(), ...this.#others]) reject(error);
    this.#others = [];
    this.#scopes.clear();
    this.#waiting = 0;
  }

  /** Slices one after the other, where no steps are made. */
  async #serve() {
    if (this.#serves) return;
    this.#serves = true;
    do await this.#rest(); while (!this.#isLed && this.#give(SLICE_MS));
    this.#serves = false;
  }

  /** A slice for whose turn it is. @returns {boolean} whether anybody waits */
  #give(ms) {
    if (this.#waiting === 0) return false;
    const began = this.#now();
    const scope = first(this.#scopes, began);
    const guest = first(scope.guests, began);
    const { work, resolve, reject, job } = guest.take();
    for (const account of [scope, guest]) account.waiting--;
    this.#waiting--;
    try {
      resolve(work(ms));
    } catch (error) {
      reject(error);
    }
    const now = this.#now();
    for (const account of [scope, guest]) account.charge(now - began, now);
    job.used += now - began;
    this.#credit -= now - began;
    return true;
  }
}

// SPDX-License-Identifier: MIT
// Schedules all work beside the model's steps: tokens of texts, prompts of conversations, pixels. The work is cut into
// slices of some milliseconds, and between two slices the worker looks at its messages. While replies are made, slices
// together get a fifth of the steps' time, and less if more guests have replies than wait for slices; so a guest with
// many slices slows the replies of others only by its share. Without replies, slices follow each other directly.
//
// Among waiting owners, the one that has used the least time recently comes first: by scope (API key), then by guest
// (connection). Used time is forgotten gradually, and waiting time is subtracted from it, so nobody waits forever.

import { Account, accountOf } from './shares.js';

/** Longest slice, and the slices' part of the steps' time. */
const SLICE_MS = 5;
const SHARE = 1 / 5;

/** Least time for slices beside each step, too short to be noticed. */
const LEAST_MS = 0.5;

/** A guest's requests go in order. A request that has used this time lets the guest's later ones go on beside it. */
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

/** The first of the waiting accounts. */
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
  #credit = 0;          // milliseconds that slices may still take; negative after a slice that took longer
  #isLed = false;       // steps are made, and slices come between them
  #serves = false;
  #isTaken = false;     // somebody holds alone()
  #others = [];         // those who wait for alone()
  #dead = null;
  #jobs = new WeakMap();    // owner object of a request -> its order, and the time that it has used
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
   * Runs a slice of work when its owner's turn comes. Only the time until `work` returns counts, not that of promises
   * that it starts.
   * @template T
   * @param {Owner} owner
   * @param {(ms: number) => T} work gets the time that it may take
   * @returns {Promise<Awaited<T>>} the result of the work
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
   * Runs all steps of some work, in each slice as many as there is time for.
   * @template T
   * @param {Owner} owner
   * @param {Iterator<unknown, T, void>} steps of about a millisecond each; the iterator is closed if a step fails
   * @param {AbortSignal} [signal] ends the work
   * @returns {Promise<T>} the value that the iterator returns
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
   * Waits for a lock that one owner holds at a time. The one that has used the least time comes first.
   * @param {Owner} owner
   * @returns {Promise<() => null>} a function that releases the lock
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

  /** Number of known guests. */
  get guests() { return [...this.#scopes.values()].reduce((sum, { guests }) => sum + guests.size, 0); }

  /** Steps begin: until end(), slices run in after() only. */
  begin() {
    this.#isLed = true;
    this.#credit = 0;
  }

  end() {
    this.#isLed = false;
    this.#serve();
  }

  /**
   * Called between two steps: looks at the messages, and runs the slices that are due.
   * @param {number} ms time of the step before
   * @param {number} [owners] number of guests who have replies
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

  /** The engine has crashed: all waiting work fails. */
  crash(error) {
    this.#dead ??= error;
    const queues = [...this.#scopes.values()].flatMap(({ guests }) => [...guests.values()].map(({ queue }) => queue));
    for (const { reject } of [...queues.flat(), ...this.#others]) reject(error);
    this.#others = [];
    this.#scopes.clear();
    this.#waiting = 0;
  }

  /** Runs slices one after the other while no steps are made. */
  async #serve() {
    if (this.#serves) return;
    this.#serves = true;
    do await this.#rest(); while (!this.#isLed && this.#give(SLICE_MS));
    this.#serves = false;
  }

  /** Runs one slice. @returns {boolean} false: nothing waits */
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

// SPDX-License-Identifier: MIT
// Counts the time that owners have used recently: scopes (API keys), and the guests (connections) of a scope.

/** Half of the counted time is forgotten after this time. */
const HALF_LIFE_MS = 10_000;

/** Part of an owner's waiting time that is subtracted from its used time. */
const PATIENCE = 1 / 5;

/** Used time that counts as forgotten, and number of new accounts between two searches for forgotten ones. */
const NOTHING_MS = 1;
const SWEEP = 64;

/**
 * The sender of a request: its cacheScope, and which of the guests who share the scope.
 * @typedef {{scope: number, guest: number}} Owner
 */

/** @param {{cacheScope?: number, guest?: number}} options of a request */
export const ownerOf = ({ cacheScope = 0, guest = 0 }) => ({ scope: cacheScope, guest });

/** A name of a guest that is unique among all scopes. @param {Owner} owner */
export const guestKey = ({ scope, guest }) => `${scope} ${guest}`;

/** The time that an owner has used, and the number of its slices that wait. */
export class Account {
  #used = 0;
  #at = 0;            // time at which #used was counted
  waiting = 0;
  since = 0;          // when it began to wait, or had its last slice

  used(now) { return this.#used * 2 ** ((this.#at - now) / HALF_LIFE_MS); }
  rank(now) { return this.used(now) - (now - this.since) * PATIENCE; }
  isForgotten(now) { return this.waiting === 0 && this.used(now) < NOTHING_MS; }

  enter(now) {
    if (this.waiting++ === 0) this.since = now;
  }

  charge(ms, now) {
    this.#used = this.used(now) + ms;
    this.#at = this.since = now;
  }
}

/** Returns the account of this name; removes accounts that are as good as new. */
export function accountOf(accounts, name, Kind, now) {
  const known = accounts.get(name);
  if (known) return known;
  if (accounts.size % SWEEP === SWEEP - 1)
    for (const [other, account] of accounts) if (account.isForgotten(now)) accounts.delete(other);
  const account = new Kind();
  accounts.set(name, account);
  return account;
}

export class Shares {
  #accounts = new Map();      // by scope, and by guest key

  #of(owner, now) {
    return [owner.scope, guestKey(owner)].map((name) => accountOf(this.#accounts, name, Account, now));
  }

  /**
   * Compares two owners: those that have used less come first, by scope and then by guest.
   * @param {Owner} a
   * @param {Owner} b
   */
  compare(a, b) {
    const now = performance.now();
    const [[scopeA, guestA], [scopeB, guestB]] = [this.#of(a, now), this.#of(b, now)];
    return scopeA.used(now) - scopeB.used(now) || guestA.used(now) - guestB.used(now);
  }

  /** @param {Owner} owner */
  charge(owner, ms) {
    const now = performance.now();
    for (const account of this.#of(owner, now)) account.charge(ms, now);
  }
}

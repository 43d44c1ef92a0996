// SPDX-License-Identifier: MIT
// How much time whoever asks has used of late: the scopes (keys), and of a scope its guests (connections).

/** In this time half of what was used is forgotten. */
const HALF_LIFE_MS = 10_000;

/** So much of the time that somebody waits is taken off what he has used. */
const PATIENCE = 1 / 5;

/** What is left when it is as good as forgotten, and how many come between two looks for such. */
const NOTHING_MS = 1;
const SWEEP = 64;

/**
 * Who asks: his cacheScope, and which of those who share it.
 * @typedef {{scope: number, guest: number}} Owner
 */

/** @param {{cacheScope?: number, guest?: number}} options of a request */
export const ownerOf = ({ cacheScope = 0, guest = 0 }) => ({ scope: cacheScope, guest });

/** A guest among those of all scopes. @param {Owner} owner */
export const guestKey = ({ scope, guest }) => `${scope} ${guest}`;

/** Time that somebody has used, and those of his who wait. */
export class Account {
  #used = 0;
  #at = 0;            // when it was that much
  waiting = 0;
  since = 0;          // he waits, or had his last slice

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

/** Accounts by their names, without those that are as good as new. */
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
  #accounts = new Map();      // by scope, and by guest

  #of(owner, now) {
    return [owner.scope, guestKey(owner)].map((name) => accountOf(this.#accounts, name, Account, now));
  }

  /**
   * Who has used less comes first, among the scopes and then among the guests of one.
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

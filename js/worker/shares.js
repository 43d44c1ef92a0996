// SPDX-License-Identifier: MIT
// How much time whoever asks has used of late: the scopes (keys), and of a scope its guests (connections).

/** In this time half of what was used is forgotten; what is left below a millisecond, all of it. */
const HALF_LIFE_MS = 10_000;
const SWEEP = 256;

/**
 * Who asks: his cacheScope, and which of those who share it.
 * @typedef {{scope: number, guest: number}} Owner
 */

/** @param {{cacheScope?: number, guest?: number}} options of a request */
export const ownerOf = ({ cacheScope = 0, guest = 0 }) => ({ scope: cacheScope, guest });

const keysOf = ({ scope, guest }) => [String(scope), `${scope} ${guest}`];

export class Shares {
  #accounts = new Map();      // key -> {ms, at}

  #used(key, now) {
    const { ms, at } = this.#accounts.get(key) ?? { ms: 0, at: now };
    return ms * 2 ** ((at - now) / HALF_LIFE_MS);
  }

  /** Who has used less comes first, among the scopes and then among the guests of one. @param {Owner} a @param {Owner} b */
  compare(a, b) {
    const now = performance.now();
    const [[scopeA, guestA], [scopeB, guestB]] = [keysOf(a), keysOf(b)];
    return this.#used(scopeA, now) - this.#used(scopeB, now) || this.#used(guestA, now) - this.#used(guestB, now);
  }

  /** @param {Owner} owner */
  charge(owner, ms) {
    const now = performance.now();
    for (const key of keysOf(owner)) this.#accounts.set(key, { ms: this.#used(key, now) + ms, at: now });
    if (this.#accounts.size % SWEEP === 0) for (const key of this.#accounts.keys()) if (this.#used(key, now) < 1) this.#accounts.delete(key);
  }
}

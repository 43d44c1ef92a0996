// SPDX-License-Identifier: MIT
// Memory for decoding images. The memory that an image takes is known before it begins; an image without room waits.
// Only one image of a guest is decoded at a time. The scope (API key) whose last image was admitted longest ago comes
// first, and within a scope the guest (connection) likewise. Nothing overtakes the image whose turn it is, so a large
// image does not wait forever behind small ones.

import { abortable } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { guestKey } from './shares.js';

const tooMuch = (bytes, most) =>
  new QuernError(
    'image/size',
    `Decoding this image takes up to ${bytes} bytes of memory, at most ${most} are possible at a time.`,
    { detail: { found: bytes, limit: most } },
  );

export class Room {
  #most;
  #held = 0;
  #waiting = [];            // {owner, bytes, admit}, in order of arrival
  #working = new Set();     // keys of guests
  #last = new Map();        // scope or guest that waits or works -> turn of its last admission
  #turns = 0;

  /** @param {number} most bytes of all images that are decoded at the same time */
  constructor(most) {
    this.#most = most;
  }

  /** Bytes of the images that are being decoded. */
  get held() { return this.#held; }

  /**
   * Waits for room. Throws if the image takes more than all of it.
   * @param {import('./turns.js').Owner} owner
   * @param {number} bytes
   * @param {AbortSignal} signal
   * @returns {Promise<() => void>} a function that gives the room back
   */
  async enter(owner, bytes, signal) {
    if (bytes > this.#most) throw tooMuch(bytes, this.#most);
    const waiting = { owner, bytes, admit: () => {} };
    const admitted = new Promise((resolve) => { waiting.admit = () => resolve(undefined); });
    this.#waiting.push(waiting);
    this.#letIn();
    try {
      await abortable(admitted, signal);
    } catch (error) {
      if (this.#waiting.includes(waiting)) this.#remove(waiting);
      else this.#leave(waiting);
      throw error;
    }
    return () => this.#leave(waiting);
  }

  #remove(waiting) {
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
    this.#letIn();
  }

  #leave({ owner, bytes }) {
    this.#held -= bytes;
    this.#working.delete(guestKey(owner));
    this.#letIn();
    if (this.#working.size === 0 && this.#waiting.length === 0) this.#last.clear();
  }

  #letIn() {
    for (let next; (next = this.#next()) && this.#held + next.bytes <= this.#most;) {
      this.#waiting = this.#waiting.filter((other) => other !== next);
      this.#held += next.bytes;
      this.#working.add(guestKey(next.owner));
      this.#turns++;
      for (const key of [next.owner.scope, guestKey(next.owner)]) this.#last.set(key, this.#turns);
      next.admit();
    }
  }

  /** The waiting image whose turn it is. */
  #next() {
    const lastOf = ({ owner }) => [owner.scope, guestKey(owner)].map((key) => this.#last.get(key) ?? 0);
    let [best, its] = [null, [0, 0]];
    for (const one of this.#waiting) {
      if (this.#working.has(guestKey(one.owner))) continue;
      const last = lastOf(one);
      if (!best || last[0] < its[0] || (last[0] === its[0] && last[1] < its[1])) [best, its] = [one, last];
    }
    return best;
  }
}

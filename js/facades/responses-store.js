// SPDX-License-Identifier: MIT
// Responses that are kept for whoever asked for them: as texts of JSON, so that nothing changes them and their size is
// known, so many and so long for each key, the ones that nobody has asked for longest going first. What is still being
// made stays until it is.

import { QuernError, badParam } from '../shared/errors.js';

/**
 * For each key: responses, letters of them all, those being made in the background, and letters of one conversation.
 */
const MOST = { responses: 1000, letters: 2 ** 24, live: 32, conversation: 2 ** 22 };

const missing = (param, message, reason) => new QuernError('use/param', message, { detail: { param, reason } });

/**
 * One response.
 * @typedef {object} Kept
 * @property {string} text JSON of `{response, input, previous}`: what it is, its input's items, and the response before
 *   it; '' while it is being made
 * @property {{snapshot: () => any, cancel: () => Promise<void>} | null} live while it is being made
 * @property {string[]} items ids in its input and output
 */

/** Responses of one key. */
export class Shelf {
  /** @type {Map<string, Kept>} by id, the one that was asked for last behind all others */
  #kept = new Map();
  #places = new Map();      // id of an item -> id of its response
  #letters = 0;

  #touch(id) {
    const kept = this.#kept.get(id);
    if (!kept) return null;
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    return kept;
  }

  /** Refuses one more in the background where there are too many. */
  checkLive() {
    const count = [...this.#kept.values()].filter(({ live }) => live).length;
    if (count >= MOST.live)
      throw new QuernError('use/busy', `${MOST.live} responses are being made in the background, which is the most.`);
  }

  /** One that is being made in the background. */
  begin(id, live) { this.#kept.set(id, { text: '', live, items: [] }); }

  /** @param {{response: any, input: any[], previous: string | null}} what */
  keep({ response, input, previous }) {
    this.remove(response.id);
    const text = JSON.stringify({ response, input, previous });
    const items = [...input, ...response.output].map(({ id }) => id).filter((id) => typeof id === 'string');
    this.#kept.set(response.id, { text, live: null, items });
    for (const item of items) this.#places.set(item, response.id);
    this.#letters += text.length;
    for (const [id, { live }] of this.#kept) {
      if (this.#kept.size <= MOST.responses && this.#letters <= MOST.letters) break;
      if (!live) this.remove(id);
    }
  }

  /** @returns {boolean} whether it was there */
  remove(id) {
    const kept = this.#kept.get(id);
    if (!kept) return false;
    this.#kept.delete(id);
    this.#letters -= kept.text.length;
    for (const item of kept.items) if (this.#places.get(item) === id) this.#places.delete(item);
    return true;
  }

  /** The response as it is now; null: there is none. */
  response(id) {
    const kept = this.#touch(id);
    return kept && (kept.live ? kept.live.snapshot() : JSON.parse(kept.text).response);
  }

  live(id) { return this.#kept.get(id)?.live ?? null; }

  /**
   * @returns {{response: any, input: any[], previous: string | null, letters: number} | null} null: it is not there, or
   * not whole
   */
  read(id) {
    const kept = this.#touch(id);
    return kept?.text ? { ...JSON.parse(kept.text), letters: kept.text.length } : null;
  }

  /** The id of the response that an item is in. */
  placeOf(item) { return this.#places.get(item); }
}

/** What one request reads, which is bounded: it may name a conversation, and items by their thousands. */
export class Reader {
  #shelf;
  #read = new Map();
  #items = new Map();     // of a response, by their ids
  #left = MOST.conversation;

  /** @param {Shelf} shelf */
  constructor(shelf) {
    this.#shelf = shelf;
  }

  #take(letters, param) {
    this.#left -= letters;
    if (this.#left < 0) throw badParam(param, `leads to a conversation of more than ${MOST.conversation} letters`);
  }

  #response(id) {
    if (!this.#read.has(id)) this.#read.set(id, this.#shelf.read(id));
    return this.#read.get(id);
  }

  /** An item, its letters counted. */
  #item(id) {
    const place = this.#shelf.placeOf(id);
    if (!place) return undefined;
    if (!this.#items.has(place)) {
      const { input, response } = this.#response(place);
      this.#items.set(place, new Map([...input, ...response.output].map((item) => [item.id, item])));
    }
    return this.#items.get(place).get(id);
  }

  /**
   * All items up to the end of a response, or up to its own input.
   * @returns {any[] | null} null: not all of them are there any more
   */
  conversation(id, withOutput = true) {
    const parts = [];
    for (let at = id; at;) {
      const kept = this.#response(at);
      if (!kept) return null;
      this.#take(kept.letters, 'previous_response_id');
      parts.push([...kept.input, ...(at !== id || withOutput ? kept.response.output : [])]);
      at = kept.previous;
    }
    return parts.reverse().flat();
  }

  /** What was said before a request that names a response. */
  before(id) {
    if (typeof id !== 'string') throw badParam('previous_response_id', 'must be a text');
    const found = this.conversation(id);
    if (found) return found;
    throw missing(
      'previous_response_id',
      `The response '${id.slice(0, 64)}' is not kept here, or no longer.`,
      'previous_response_not_found',
    );
  }

  /** An item that a request names by its id. */
  item(id, path) {
    const found = this.#item(id);
    if (!found)
      throw missing(`${path}.id`, `${path}.id is of an item that is not kept here, or no longer.`, 'item_not_found');
    this.#take(JSON.stringify(found).length, path);
    return found;
  }
}

/** Shelves by key. */
export class Shelves {
  #all = new Map();

  /** @param {number} key who asks */
  of(key) {
    if (!this.#all.has(key)) this.#all.set(key, new Shelf());
    return this.#all.get(key);
  }
}

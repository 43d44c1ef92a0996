// SPDX-License-Identifier: MIT
// Stored responses of each client. They are stored as JSON text, so that nothing changes them and their size is known.
// Each key has limits of number and size; the least recently used ones are removed first. A response in progress stays
// until it is complete.

import { QuernError, badParam } from '../shared/errors.js';

/**
 * Limits of each key: responses, letters of all of them, responses in progress in the background, and letters of one
 * conversation.
 */
const MOST = { responses: 1000, letters: 2 ** 24, live: 32, conversation: 2 ** 22 };

const missing = (param, message, reason) => new QuernError('use/param', message, { detail: { param, reason } });

/**
 * One response.
 * @typedef {object} Kept
 * @property {string} text JSON of `{response, input, previous}`: the response, the items of its input, and the response
 *   before it; '' while it is in progress
 * @property {{snapshot: () => any, cancel: () => Promise<void>} | null} live while it is in progress
 * @property {string[]} items ids in its input and output
 */

/** Responses of one key. */
export class Shelf {
  /** @type {Map<string, Kept>} by id, the most recently used last */
  #stored = new Map();
  #places = new Map();      // id of an item -> id of its response
  #letters = 0;

  #touch(id) {
    const stored = this.#stored.get(id);
    if (!stored) return null;
    this.#stored.delete(id);
    this.#stored.set(id, stored);
    return stored;
  }

  /** Refuses another background response if there are too many. */
  checkLive() {
    const count = [...this.#stored.values()].filter(({ live }) => live).length;
    if (count >= MOST.live)
      throw new QuernError('use/busy', `${MOST.live} responses are in progress in the background, which is the limit.`);
  }

  /** Adds a background response in progress. */
  begin(id, live) { this.#stored.set(id, { text: '', live, items: [] }); }

  /** @param {{response: any, input: any[], previous: string | null}} what */
  store({ response, input, previous }) {
    this.remove(response.id);
    const text = JSON.stringify({ response, input, previous });
    const items = [...input, ...response.output].map(({ id }) => id).filter((id) => typeof id === 'string');
    this.#stored.set(response.id, { text, live: null, items });
    for (const item of items) this.#places.set(item, response.id);
    this.#letters += text.length;
    for (const [id, { live }] of this.#stored) {
      if (this.#stored.size <= MOST.responses && this.#letters <= MOST.letters) break;
      if (!live) this.remove(id);
    }
  }

  /** @returns {boolean} whether it existed */
  remove(id) {
    const stored = this.#stored.get(id);
    if (!stored) return false;
    this.#stored.delete(id);
    this.#letters -= stored.text.length;
    for (const item of stored.items) if (this.#places.get(item) === id) this.#places.delete(item);
    return true;
  }

  /** The current state of a response; null if there is none. */
  response(id) {
    const stored = this.#touch(id);
    return stored && (stored.live ? stored.live.snapshot() : JSON.parse(stored.text).response);
  }

  live(id) { return this.#stored.get(id)?.live ?? null; }

  /**
   * @returns {{response: any, input: any[], previous: string | null, letters: number} | null} null: it does not exist,
   *   or is not complete
   */
  read(id) {
    const stored = this.#touch(id);
    return stored?.text ? { ...JSON.parse(stored.text), letters: stored.text.length } : null;
  }

  /** The id of the response that contains an item. */
  placeOf(item) { return this.#places.get(item); }
}

/** Reads stored responses for one request, with a limit: a request may name a conversation, and thousands of items. */
export class Reader {
  #shelf;
  #read = new Map();
  #items = new Map();     // items of a response, by id
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

  /** Returns an item. */
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
   * @returns {any[] | null} null: some of them are no longer stored
   */
  conversation(id, withOutput = true) {
    const parts = [];
    for (let at = id; at;) {
      const stored = this.#response(at);
      if (!stored) return null;
      this.#take(stored.letters, 'previous_response_id');
      parts.push([...stored.input, ...(at !== id || withOutput ? stored.response.output : [])]);
      at = stored.previous;
    }
    return parts.reverse().flat();
  }

  /** The conversation before a request that names a response. */
  before(id) {
    if (typeof id !== 'string') throw badParam('previous_response_id', 'must be a text');
    const found = this.conversation(id);
    if (found) return found;
    throw missing(
      'previous_response_id',
      `The response '${id.slice(0, 64)}' is not stored here, or no longer.`,
      'previous_response_not_found',
    );
  }

  /** An item that a request names by its id. */
  item(id, path) {
    const found = this.#item(id);
    if (!found)
      throw missing(`${path}.id`, `${path}.id names an item that is not stored here, or no longer.`, 'item_not_found');
    this.#take(JSON.stringify(found).length, path);
    return found;
  }
}

/** The shelves of all keys. */
export class Shelves {
  #all = new Map();

  /** @param {number} key of the client */
  of(key) {
    if (!this.#all.has(key)) this.#all.set(key, new Shelf());
    return this.#all.get(key);
  }
}

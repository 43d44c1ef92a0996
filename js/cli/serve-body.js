// SPDX-License-Identifier: MIT
// The JSON that a request brings, read as far as it may be long, and be work, and refused before that where its headers
// tell. While its request is under way it is held as bytes, of which there are only so many, and read anew when it is
// wanted: what JSON becomes can be many times as large.

import { JsonWeight, MOST_WEIGHT } from '../facades/json-weight.js';
import { bodyOf } from '../facades/openai.js';
import { retryHeaders } from '../facades/openai-error.js';
import { isRecord } from '../shared/kinds.js';
import { refusal } from './serve-refusal.js';

/** Of a body, at its top. */
const MOST_FIELDS = 1000;

const tooLarge = (most) => refusal(413, `The body is larger than ${most} bytes.`);

const TOO_HEAVY =
  'The body has too many values: a number counts 1, a text 3, an array or an object 5, a name 16 more, together at most ' +
  `${MOST_WEIGHT}.`;

/** Room for the bodies of all requests under way. */
export class Bodies {
  #most;
  #retryAfter;
  #bytes = 0;

  /** @param {number} most bytes @param {() => number} retryAfter seconds */
  constructor(most, retryAfter) {
    this.#most = most;
    this.#retryAfter = retryAfter;
  }

  take(bytes) {
    if (this.#bytes + bytes > this.#most) {
      const message = `The bodies of requests under way take the ${this.#most} bytes there are for them.`;
      throw refusal(429, message, { headers: retryHeaders(this.#retryAfter()) });
    }
    this.#bytes += bytes;
  }

  give(bytes) { this.#bytes -= bytes; }
}

/** What a request has brought, until release(). */
export class Body {
  #bodies;
  #chunks = [];
  #size = 0;
  #isOver = false;
  #weight = new JsonWeight();

  /** @param {Bodies} bodies */
  constructor(bodies) {
    this.#bodies = bodies;
  }

  /** @param {number} most bytes @returns {Promise<void>} once all of it is there */
  read(request, most) {
    return new Promise((resolve, reject) => {
      request.on('data', (chunk) => {
        try {
          if (!this.#isOver) this.#add(chunk, most);
        } catch (error) {
          this.release();
          reject(error);
        }
      });
      request.on('end', resolve);
      request.on('error', reject);
      request.on('close', () => reject(refusal(400, 'The request has not come whole.')));
    });
  }

  #add(chunk, most) {
    if (this.#size + chunk.length > most) throw tooLarge(most);
    if (this.#weight.add(chunk) > MOST_WEIGHT) throw refusal(413, TOO_HEAVY);
    this.#bodies.take(chunk.length);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
  }

  /** What it was parsed to last, by which others know it; undefined: it is none, or has been forgotten. */
  known;

  /** @returns {any} its JSON, each time anew */
  parse() {
    try {
      this.known = bodyOf(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(this.#chunks)));
    } catch {
      throw refusal(400, 'The body is not JSON in UTF-8.');
    }
    if (isRecord(this.known) && Object.keys(this.known).length > MOST_FIELDS)
      throw refusal(400, `The body has more than ${MOST_FIELDS} fields.`);
    return this.known;
  }

  /** Bytes. */
  get size() { return this.#size; }

  /** But for its bytes. */
  forget() { this.known = undefined; }

  release() {
    this.#bodies.give(this.#size);
    this.#isOver = true;
    this.#size = 0;
    this.#chunks = [];
  }
}

/** Fills a body. @param {Body} body @param {number} most bytes */
export async function readBody(request, body, most) {
  const {
    'content-type': type = '',
    'content-encoding': encoding = 'identity',
    'content-length': length,
  } = request.headers;
  if (!/^application\/json *(?:;|$)/i.test(type)) throw refusal(415, 'The Content-Type must be application/json.');
  if (encoding.toLowerCase() !== 'identity') throw refusal(415, 'A compressed body is not taken.');
  if (Number(length) > most) throw tooLarge(most);
  await body.read(request, most);
}

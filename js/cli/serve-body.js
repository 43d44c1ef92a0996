// SPDX-License-Identifier: MIT
// Reads the JSON body of a request, with limits on its length and on the work that it means, and refuses it early if
// the headers tell enough. While the request is under way its body is held as bytes, whose total is limited, and parsed
// anew when it is needed, because parsed JSON can be many times as large.

import { JsonWeight, MOST_WEIGHT } from '../facades/json-weight.js';
import { bodyOf } from '../facades/openai.js';
import { retryHeaders } from '../facades/openai-error.js';
import { isRecord } from '../shared/kinds.js';
import { refusal } from './serve-refusal.js';

/** Most fields of a body. */
const MOST_FIELDS = 1000;

const tooLarge = (most) => refusal(413, `The body is larger than ${most} bytes.`);

const TOO_HEAVY =
  'The body has too many values: a number counts 1, a text 3, an array or an object 5, a name 16 more, together at most ' +
  `${MOST_WEIGHT}.`;

/** Counts the bytes of the bodies of all requests under way. */
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
      const message = `The bodies of all requests use up the ${this.#most} bytes for bodies.`;
      throw refusal(429, message, { headers: retryHeaders(this.#retryAfter()) });
    }
    this.#bytes += bytes;
  }

  give(bytes) { this.#bytes -= bytes; }
}

/** The body of a request, until release(). */
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

  /** @param {number} most bytes @returns {Promise<void>} resolves when the body is complete */
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
      request.on('close', () => reject(refusal(400, 'The request is incomplete.')));
    });
  }

  #add(chunk, most) {
    if (this.#size + chunk.length > most) throw tooLarge(most);
    if (this.#weight.add(chunk) > MOST_WEIGHT) throw refusal(413, TOO_HEAVY);
    this.#bodies.take(chunk.length);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
  }

  /** The last result of parse(), which names the request in other places; undefined: none, or forgotten. */
  known;

  /** @returns {any} the JSON, parsed anew each time */
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

  /** Number of bytes. */
  get size() { return this.#size; }

  /** Forgets the parsed JSON and keeps the bytes. */
  forget() { this.known = undefined; }

  release() {
    this.#bodies.give(this.#size);
    this.#isOver = true;
    this.#size = 0;
    this.#chunks = [];
  }
}

/** Reads a request into a body. @param {Body} body @param {number} most bytes */
export async function readBody(request, body, most) {
  const {
    'content-type': type = '',
    'content-encoding': encoding = 'identity',
    'content-length': length,
  } = request.headers;
  if (!/^application\/json *(?:;|$)/i.test(type)) throw refusal(415, 'The Content-Type must be application/json.');
  if (encoding.toLowerCase() !== 'identity') throw refusal(415, 'Compressed bodies are not supported.');
  if (Number(length) > most) throw tooLarge(most);
  await body.read(request, most);
}

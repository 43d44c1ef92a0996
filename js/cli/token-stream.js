// SPDX-License-Identifier: MIT
// The tokens of a text that comes in pieces, in the memory of a part of it: a text is cut where that changes none of
// its tokens. One without such a place is taken as a whole.

/** Bytes that make a part. */
const PART = 1 << 18;

/** Of tokenizer.ggml.token_type: tokens that plain text becomes by its letters. */
const USER_DEFINED = 4;

const NO_IDS = new Int32Array(0);

const isLineEnd = (byte) => byte === 0x0a || byte === 0x0d;
const isDigit = (byte) => byte >= 0x30 && byte <= 0x39;
const isPrinted = (byte) => byte > 0x20 && byte < 0x7f;

/** Whether a character that is no space begins with this byte. One that begins with C2, E1, E2 or E3 may be a space. */
const beginsWord = (byte) => isPrinted(byte) || (byte > 0xc2 && byte < 0xe0) || byte > 0xe3;

/**
 * The last place in a text where it can be cut: Qwen's split (src/text/pieces.c) never goes on behind a digit, from a
 * line end to what is no space, nor from another character to a space. 0: there is none.
 */
export function cutOf(bytes) {
  for (let at = bytes.length - 1; at > 0; at--) {
    const [before, after] = [bytes[at - 1], bytes[at]];
    if (isDigit(before) || (isLineEnd(before) && beginsWord(after)) || (isPrinted(before) && after === 0x20)) return at;
  }
  return 0;
}

/**
 * Whether texts can be cut at all: not where tokens are joined by scores, nor where a special one may lie across such a
 * place.
 */
function canCut(engine) {
  const { tokenizer, tokens } = engine.facts;
  for (let id = 0; id < tokens; id++) {
    if (engine.tokenType(id) === USER_DEFINED && /[ \r\n\d]/.test(engine.detokenize([id]))) return false;
  }
  return tokenizer === 'gpt2';
}

/** Bytes of a text go in as they come, its ids come out, of the last bytes with the next ones. */
export class TokenStream {
  #engine;
  #canCut;
  #held = [];
  #size = 0;          // of what is held
  #part;
  #wanted;

  /** @param {import('../engine/engine.js').Engine} engine @param {number} [part] for tests */
  constructor(engine, part = PART) {
    this.#engine = engine;
    this.#canCut = canCut(engine);
    this.#part = part;
    this.#wanted = part;
  }

  /** @param {Uint8Array} bytes @returns {Int32Array} */
  push(bytes) {
    this.#held.push(bytes);
    this.#size += bytes.length;
    return this.#canCut && this.#size >= this.#wanted ? this.#take(cutOf) : NO_IDS;
  }

  /** The rest. Another text may begin. */
  end() {
    return this.#take((bytes) => bytes.length);
  }

  #take(endOf) {
    const bytes = Buffer.concat(this.#held);
    const end = endOf(bytes);
    this.#held = [bytes.subarray(end)];
    this.#size -= end;
    // a text without a place to cut is not searched again for each part
    this.#wanted = Math.max(this.#part, 2 * this.#size);
    return end ? this.#engine.tokenize(bytes.subarray(0, end)) : NO_IDS;
  }
}

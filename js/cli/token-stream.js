// SPDX-License-Identifier: MIT
// Tokenizes a text that comes in pieces, with memory for a part of it only. The text is cut where a cut changes no
// token. A text without such a place is tokenized as a whole.

/** Least bytes of a part. */
const PART = 1 << 18;

/** A value of tokenizer.ggml.token_type: tokens that plain text becomes if it has their letters. */
const USER_DEFINED = 4;

const NO_IDS = new Int32Array(0);

const isLineEnd = (byte) => byte === 0x0a || byte === 0x0d;
const isDigit = (byte) => byte >= 0x30 && byte <= 0x39;
const isPrinted = (byte) => byte > 0x20 && byte < 0x7f;

/** Whether this byte begins a character that is no space. Characters that begin with C2, E1, E2 or E3 may be spaces. */
const beginsWord = (byte) => isPrinted(byte) || (byte > 0xc2 && byte < 0xe0) || byte > 0xe3;

/**
 * The last place where a text can be cut: after a digit, between a newline and a character that is no space, or between
 * a printed character and a space. Qwen's pieces (src/text/pieces.c) never extend across these. 0: none.
 */
export function cutOf(bytes) {
  for (let at = bytes.length - 1; at > 0; at--) {
    const [before, after] = [bytes[at - 1], bytes[at]];
    if (isDigit(before) || (isLineEnd(before) && beginsWord(after)) || (isPrinted(before) && after === 0x20)) return at;
  }
  return 0;
}

/**
 * Whether texts can be cut at all: not if tokens are joined by scores, nor if a user-defined token may lie across a
 * cut.
 */
function canCut(engine) {
  const { tokenizer, tokens } = engine.facts;
  for (let id = 0; id < tokens; id++) {
    if (engine.tokenType(id) === USER_DEFINED && /[ \r\n\d]/.test(engine.detokenize([id]))) return false;
  }
  return tokenizer === 'gpt2';
}

/** Takes the bytes of a text in pieces and returns ids; those of the last bytes come with the next ones. */
export class TokenStream {
  #engine;
  #canCut;
  #held = [];
  #size = 0;          // number of held bytes
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

  /** Returns the remaining ids. Another text may begin afterwards. */
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

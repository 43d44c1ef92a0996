// SPDX-License-Identifier: MIT
// quern.h's sequence as a JavaScript object: one conversation's tokens in the engine. A reply is begun on tokens that
// are held; what comes of it the engine tells by events (Engine.events). Other tokens are driven: computed while the
// engine steps, and looked at in between.

/**
 * What is wanted of the tokens: the logits of each, the last one's hidden state, a reply to all of them, or the hidden
 * state of each.
 */
const OUTPUTS = { all: 1, hidden: 2, held: 3, states: 4 };

/** Flags of what a reply may say. */
const [LENIENT, WAITS] = [1, 2];

/** Bytes of the header of a saved conversation (src/engine/saved.h). */
const HEADER = 4096;

/** What the engine says of a record, by its status. */
const RECORDS = { 0: 'next', [-1]: 'damaged', [-10]: 'other', [-11]: 'full' };

const encoder = new TextEncoder();

export class Sequence {
  #wasm;
  #heap;
  #out;
  #facts;
  #check;
  #address;
  #size = 0;

  /** Of its tokens those that were known when they were set. */
  known = 0;

  /** Events name it so; no other one of the engine ever has the same. */
  number;

  /** @param {object} engine its exported functions, heap, room for second results, facts, and what checks a status */
  constructor({ wasm, heap, out, facts, check }, address) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#out = out;
    this.#facts = facts;
    this.#check = check;
    this.#address = address;
    this.number = wasm._wasm_sequence_number(address);
  }

  /** Wherever it is; what was computed stays known. */
  free() { this.#wasm._wasm_sequence_free(this.#address); }

  /**
   * Makes these tokens the conversation.
   * @param {'all' | 'hidden' | 'held' | 'states'} outputs
   * @param {Uint8Array[]} [media] ids of its images, in order (media.js)
   */
  set(ids, outputs, media = []) {
    this.#size = ids.length;
    const before = 8 * media.length;
    this.#heap.lend(before + 4 * ids.length, (address) => {
      media.forEach((id, i) => this.#heap.bytes(address + 8 * i, 8).set(id));
      this.#heap.int32(address + before, ids.length).set(ids);
      const status = this.#wasm._wasm_sequence_set_media(
        this.#address,
        address + before,
        ids.length,
        address,
        media.length,
        OUTPUTS[outputs],
      );
      this.known = this.#check(status);
    });
  }

  /**
   * Where its state is remembered, of a model that has one: after so many of its tokens.
   * @param {number[]} places ascending
   */
  mark(places) {
    this.#heap.lend(4 * places.length, (address) => {
      this.#heap.int32(address, places.length).set(places);
      this.#check(this.#wasm._wasm_sequence_marks(this.#address, address, places.length));
    });
  }

  /** Its tokens, and those of them whose keys and values it has. */
  get size() { return this.#size; }
  get length() { return this.#size - this.pending; }

  /** Tokens still to compute. */
  get pending() { return this.#wasm._wasm_sequence_pending(this.#address); }

  /** A copy of the rows that the last finished step made. @returns {{first: number, rows: Float32Array} | null} */
  logits() { return this.#rows(this.#facts.vocabSize); }

  /** The same of hidden states, where those of each token are wanted. */
  states() { return this.#rows(this.#facts.dim); }

  #rows(width) {
    const address = this.#wasm._wasm_logits(this.#address, this.#out);
    const [first, n] = this.#heap.int32(this.#out, 2);
    if (!address || n <= 0) return null;
    return { first, rows: this.#heap.float32(address, n * width).slice() };
  }

  /** The hidden state that the last finished step made. @returns {Float32Array | null} a copy */
  hidden() {
    const address = this.#wasm._wasm_logits(this.#address, this.#out);
    return address ? this.#heap.float32(address, this.#facts.dim).slice() : null;
  }

  /**
   * Asks for a reply.
   * @param {object} options every one of them: see reply/generation.js; silent: tokens that are none of its text,
   *   beside those that only steer
   */
  begin({
    temperature, topK, topP, minP, repeatPenalty, presencePenalty, frequencyPenalty, seed, bias, silent, maxTokens,
  }) {
    const behind = 8 * bias.length;
    this.#heap.lend(behind + 4 * silent.length, (address) => {
      const view = new DataView(this.#heap.buffer, address);
      bias.forEach(([id, amount], i) => {
        view.setInt32(8 * i, id, true);
        view.setFloat32(8 * i + 4, amount, true);
      });
      this.#heap.int32(address + behind, silent.length).set(silent);
      const { vocabSize, contextSize } = this.#facts;
      this.#check(
        this.#wasm._wasm_reply_begin(
          this.#address,
          temperature,
          Math.min(topK, vocabSize),
          topP,
          minP,
          repeatPenalty,
          presencePenalty,
          frequencyPenalty,
          seed,
          address,
          bias.length,
          address + behind,
          silent.length,
          Math.min(maxTokens, contextSize),
        ),
      );
    });
  }

  /**
   * Of which tokens what follows is, by a bit each; null: of all, as at its beginning. Between two steps.
   * @param {Uint32Array | null} bits @param {boolean} [lenient] without penalties
   */
  allow(bits, lenient = false) {
    const size = bits?.byteLength ?? 0;
    this.#heap.lend(size, (address) => {
      if (bits) this.#heap.bytes(address, size).set(new Uint8Array(bits.buffer, bits.byteOffset, size));
      this.#check(this.#wasm._wasm_reply_allow(this.#address, bits ? address : 0, lenient ? LENIENT : 0));
    });
  }

  /** It is not known yet which: until the next allow() none follows, and others go on. Between two steps. */
  wait() { this.#check(this.#wasm._wasm_reply_allow(this.#address, 0, WAITS)); }

  /**
   * Held, it stands at the beginning of its file of this name.
   * @returns {Uint8Array} the header that the file must have
   */
  save(name) {
    const text = encoder.encode(name);
    return this.#heap.lend(HEADER + text.length, (address) => {
      this.#heap.bytes(address + HEADER, text.length).set(text);
      this.#check(this.#wasm._wasm_saved_open(this.#address, address + HEADER, text.length, address));
      return this.#heap.copy(address, HEADER);
    });
  }

  /**
   * Gives it the file's next record, or only its head where the page is known or not wanted. The engine's threads look
   * at it while `meanwhile` runs, which leaves the record and the engine alone.
   * @param {Uint8Array} record in the engine's memory
   * @returns {'next' | 'damaged' | 'other' | 'full'} next: it counts; other: the conversation goes on otherwise; full:
   *   no page is unused
   */
  give({ byteOffset, length }, meanwhile = () => {}) {
    const begun = this.#wasm._wasm_saved_give_begin(this.#address, byteOffset, length);
    meanwhile();
    const status = begun || this.#wasm._wasm_saved_give_end(this.#address);
    return RECORDS[status] ?? this.#check(status);
  }

  /**
   * Makes the file's next record of its next page.
   * @param {Uint8Array} record in the engine's memory
   * @returns {boolean | null} false: there is none; null: a device has still to answer (Engine.awaits), then it is to
   *   be asked again
   */
  take({ byteOffset }) {
    const status = this.#wasm._wasm_saved_take(this.#address, byteOffset);
    return status > 0 ? null : status === 0;
  }

  /**
   * What is left of the text of a reply that is ended where it is: bytes of a character that is not whole. An end by
   * the engine tells it itself.
   */
  rest() { return this.#heap.sized(this.#wasm._wasm_rest(this.#address, this.#out), this.#out); }
}

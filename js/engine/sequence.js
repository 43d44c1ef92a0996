// SPDX-License-Identifier: MIT
// quern.h's sequence as a JavaScript object: the tokens of one conversation in the engine. A reply begins on held
// tokens, and the engine reports it by events (Engine.events). Other tokens are driven: the engine's steps compute
// them, and the caller reads their outputs between steps.

/**
 * What to compute: logits of each token, the hidden state of the last token, a reply, or hidden states of each token.
 */
const OUTPUTS = { all: 1, hidden: 2, held: 3, states: 4 };

/** Flags of wasm_reply_allow(). */
const [LENIENT, WAITS] = [1, 2];

/** Bytes of the header of a saved conversation (src/engine/saved.h). */
const HEADER = 4096;

/** Meanings of status codes for records. */
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

  /** Number of tokens that were in the cache when they were set. */
  known = 0;

  /** Its number in events; unique in the engine. */
  number;

  /** @param {object} engine its exported functions, heap, memory for second results, facts, and a check of statuses */
  constructor({ wasm, heap, out, facts, check }, address) {
    this.#wasm = wasm;
    this.#heap = heap;
    this.#out = out;
    this.#facts = facts;
    this.#check = check;
    this.#address = address;
    this.number = wasm._wasm_sequence_number(address);
  }

  /** Frees the sequence in any state; its pages stay in the cache. */
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
   * Sets where a model with states remembers the sequence's state.
   * @param {number[]} places numbers of tokens, ascending
   */
  mark(places) {
    this.#heap.lend(4 * places.length, (address) => {
      this.#heap.int32(address, places.length).set(places);
      this.#check(this.#wasm._wasm_sequence_marks(this.#address, address, places.length));
    });
  }

  /** Number of tokens, and number of computed tokens. */
  get size() { return this.#size; }
  get length() { return this.#size - this.pending; }

  /** Number of tokens that are not computed yet. */
  get pending() { return this.#wasm._wasm_sequence_pending(this.#address); }

  /** A copy of the rows that the last finished step made. @returns {{first: number, rows: Float32Array} | null} */
  logits() { return this.#rows(this.#facts.vocabSize); }

  /** The same for hidden states, after set() with 'states'. */
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
   * Begins a reply.
   * @param {object} options all are required: see reply/generation.js; silent: tokens that are not part of its text, in
   *   addition to control tokens; single: one token in a call of step()
   */
  begin({
    temperature, topK, topP, minP, repeatPenalty, presencePenalty, frequencyPenalty, seed, bias, silent, maxTokens,
    single,
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
          Number(single),
        ),
      );
    });
  }

  /**
   * Sets the tokens that may follow. Call it between two steps.
   * @param {Uint32Array | null} bits one for each token; null: all tokens @param {boolean} [lenient] without penalties
   */
  allow(bits, lenient = false) {
    const size = bits?.byteLength ?? 0;
    this.#heap.lend(size, (address) => {
      if (bits) this.#heap.bytes(address, size).set(new Uint8Array(bits.buffer, bits.byteOffset, size));
      this.#check(this.#wasm._wasm_reply_allow(this.#address, bits ? address : 0, lenient ? LENIENT : 0));
    });
  }

  /**
   * Tells which tokens the reply probably writes next: they are drafts. Call it between two steps.
   * @param {ArrayLike<number>} ids
   * @param {boolean} [guessed] by another model; else by the reply's format
   */
  draft(ids, guessed = false) {
    this.#heap.lend(4 * ids.length, (address) => {
      this.#heap.int32(address, ids.length).set(ids);
      this.#wasm._wasm_reply_draft(this.#address, address, ids.length, Number(guessed));
    });
  }

  /** How many guesses of another model pay now, if each takes that many milliseconds; -1: none, but one may be tried. */
  wants(ms) { return this.#wasm._wasm_reply_wants(this.#address, ms); }

  /** Pauses the reply until the next allow(), while others go on. Call it between two steps. */
  wait() { this.#check(this.#wasm._wasm_reply_allow(this.#address, 0, WAITS)); }

  /**
   * Prepares a held sequence to be read from or saved to the file of this name.
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
   * Gives it the file's next record, or only its head if the page is known or not wanted. The engine's threads check
   * the record while `meanwhile` runs, which must not use the record or the engine.
   * @param {Uint8Array} record in the engine's memory
   * @returns {'next' | 'damaged' | 'other' | 'full'} next: continue with the next record; other: the conversation
   *   differs; full: no page is unused
   */
  give({ byteOffset, length }, meanwhile = () => {}) {
    const begun = this.#wasm._wasm_saved_give_begin(this.#address, byteOffset, length);
    meanwhile();
    const status = begun || this.#wasm._wasm_saved_give_end(this.#address);
    return RECORDS[status] ?? this.#check(status);
  }

  /**
   * Makes the file's next record, of the next page or the state.
   * @param {Uint8Array} record in the engine's memory
   * @returns {boolean | null} false: there is none; null: a device has to answer first (Engine.awaits), then call again
   */
  take({ byteOffset }) {
    const status = this.#wasm._wasm_saved_take(this.#address, byteOffset);
    return status > 0 ? null : status === 0;
  }

  /**
   * The rest of the text of a reply that is ended early: bytes of an incomplete character. If the engine ends the
   * reply, the event has the rest.
   */
  rest() { return this.#heap.sized(this.#wasm._wasm_rest(this.#address, this.#out), this.#out); }
}

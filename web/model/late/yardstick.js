// SPDX-License-Identifier: MIT
// How fast this device computes: a model with the layers of Qwen3-0.6B, but only three of them, with noise as weights,
// writes some tokens. It goes through the same kernels, threads and builds as any model. A token reads all weights
// once, so the bytes that it reads in a second foretell the speed of a model of any size: within a fifth, since the
// types of weights differ that much (docs/benchmarks). It is made here, so that nothing is downloaded: 50 MB of memory,
// for about a second.

const HIDDEN = 1024;
const FFN = 3072;
const HEAD = 128;
const [HEADS, KV_HEADS] = [16, 8];
const LAYERS = 3;
const VOCABULARY = 512;

/** Ids of GGUF: of values, and of the types of tensors. */
const [UINT32, FLOAT32, STRING, ARRAY] = [4, 6, 8, 9];
const [F32, Q8_0] = [0, 8];

const TOKENS = 48;

/** Bytes of Q8_0 blocks: a scale of 16 bits and 32 numbers of 8 bits each. All matrices are multiples of this. */
const TILE = 4096 * 34;

function noise() {
  const tile = new Uint8Array(TILE);
  let state = 1;
  for (let i = 0; i < TILE; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const at = i % 34;
    tile[i] = at === 0 ? 0 : (at === 1 ? 0x14 : state >>> 24);    // the scale is 2^-10
  }
  return tile;
}

/** The letters by which tokens name the bytes: a byte that is no visible letter has one behind the first 256. */
function byteLetters() {
  let next = 256;
  const isSeen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : next++));
}

/** Writes the parts of a header. */
class Header {
  #parts = [];

  #number(bytes, set) {
    const view = new DataView(new ArrayBuffer(bytes));
    set(view);
    this.#parts.push(view.buffer);
  }

  u32(value) { this.#number(4, (view) => view.setUint32(0, value, true)); }
  u64(value) { this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true)); }
  f32(value) { this.#number(4, (view) => view.setFloat32(0, value, true)); }

  text(value) {
    const bytes = new TextEncoder().encode(value);
    this.u64(bytes.length);
    this.#parts.push(bytes);
  }

  /** A key with a text, a list of texts, a whole number or another one. */
  field(key, value) {
    this.text(key);
    if (Array.isArray(value)) {
      this.u32(ARRAY);
      this.u32(STRING);
      this.u64(value.length);
      for (const one of value) this.text(one);
    } else if (typeof value === 'string') {
      this.u32(STRING);
      this.text(value);
    } else {
      this.u32(Number.isInteger(value) ? UINT32 : FLOAT32);
      if (Number.isInteger(value)) this.u32(value);
      else this.f32(value);
    }
  }

  /** @returns {Blob} padded, since tensors begin at multiples of 32 */
  take() {
    const { size } = new Blob(this.#parts);
    return new Blob([...this.#parts, new Uint8Array(-size & 31)]);
  }
}

const layer = (i) => [
  ['attn_norm', HIDDEN], ['attn_q', HIDDEN, HEADS * HEAD], ['attn_k', HIDDEN, KV_HEADS * HEAD],
  ['attn_v', HIDDEN, KV_HEADS * HEAD], ['attn_output', HEADS * HEAD, HIDDEN], ['attn_q_norm', HEAD],
  ['attn_k_norm', HEAD], ['ffn_norm', HIDDEN], ['ffn_gate', HIDDEN, FFN], ['ffn_up', HIDDEN, FFN],
  ['ffn_down', FFN, HIDDEN],
].map(([name, ...dims]) => [`blk.${i}.${name}`, ...dims]);

/** The model as a GGUF file. @param {number} [layers] */
export function makeModel(layers = LAYERS) {
  const tensors = [['token_embd', HIDDEN, VOCABULARY], ['output_norm', HIDDEN],
    ...Array.from({ length: layers }, (_, i) => layer(i)).flat()];
  const fields = Object.entries({
    'general.architecture': 'qwen3', 'qwen3.block_count': layers, 'qwen3.context_length': 256,
    'qwen3.embedding_length': HIDDEN, 'qwen3.feed_forward_length': FFN, 'qwen3.attention.head_count': HEADS,
    'qwen3.attention.head_count_kv': KV_HEADS, 'qwen3.attention.key_length': HEAD,
    'qwen3.attention.layer_norm_rms_epsilon': 1e-6, 'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'qwen2',
    'tokenizer.ggml.tokens': [...byteLetters(), 'th', ...Array.from({ length: VOCABULARY - 257 }, (_, i) => `[${i}]`)],
    'tokenizer.ggml.merges': ['t h'],
  });
  const header = new Header();
  header.u32(0x46554747);     // "GGUF"
  header.u32(3);
  header.u64(tensors.length);
  header.u64(fields.length);
  for (const [key, value] of fields) header.field(key, value);
  const data = [];
  const tile = noise();
  let at = 0;
  for (const [name, ...dims] of tensors) {
    const count = dims.reduce((a, b) => a * b);
    const bytes = dims.length > 1 ? Array(count / 32 * 34 / TILE).fill(tile) : [new Float32Array(count).fill(1)];
    header.text(`${name}.weight`);
    header.u32(dims.length);
    for (const dim of dims) header.u64(dim);
    header.u32(dims.length > 1 ? Q8_0 : F32);
    header.u64(at);
    for (const one of bytes) at += one.byteLength;
    data.push(...bytes);
  }
  return new Blob([header.take(), ...data]);
}

/**
 * @param {typeof import('quern').load} load
 * @param {number} [layers] for tests
 * @returns {Promise<number>} bytes of weights that are read in a second
 */
export async function measure(load, layers = LAYERS) {
  const file = makeModel(layers);
  const model = await load(file, { store: false, drafts: false, contextSize: 128 });
  try {
    const { timings } = await model.complete('a', { maxTokens: TOKENS, temperature: 0 }).result;
    return timings.tokensPerSecond * file.size;
  } finally {
    await model.dispose();
  }
}

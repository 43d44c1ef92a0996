// SPDX-License-Identifier: MIT
// The models that find passages by their meaning (embedding models): the one that the page suggests, those that are on
// this device, and whether there is memory for one beside the model in use. The list of stored models says nothing of
// vectors, so their names decide; who loads one looks at its header again (`info.pooling`). Fetched when it is needed.
import { oneLine } from '../../shell/format.js';
import { place } from '../address.js';
import { verdict } from '../known.js';

/** Positions of a passage and its surroundings, and the bytes of their keys and values in 28 layers. */
export const CONTEXT = 1024;
const CONTEXT_BYTES = 28 * CONTEXT * 2 * 8 * 128 * 2;

const REVISION = '370f27d7550e0def9b39c1f16d3fbaa13aa67728';

/** The model that the page suggests. */
export const EMBEDDER = {
  label: 'Qwen3-Embedding-0.6B',
  quant: 'Q8_0',
  size: 639_150_592,
  url: `https://huggingface.co/Qwen/Qwen3-Embedding-0.6B-GGUF/resolve/${REVISION}/Qwen3-Embedding-0.6B-Q8_0.gguf`,
  sha256: '06507c7b42688469c4e7298b0a1e16deff06caf291cf0a5b278c308249c3e439',
};

/** Whether a model is for vectors, by the name of its file. */
export const isEmbedder = (name) => /embed/i.test(name) && !/rerank/i.test(name);

/** The name of a stored model. */
export const labelOf = ({ name }) => oneLine(name.replace(/\.gguf$/i, ''), 80);

/** The embedding model that was used last, or null. @param {import('quern').StoredModel[]} entries */
export const findEmbedder = (entries) => entries.find(({ name, complete }) => complete && isEmbedder(name)) ?? null;

/** Whether a stored model, complete or not, is the suggested one. */
export const isSuggested = ({ url }) => place(url) === place(EMBEDDER.url);

/** Most bytes of two models on a phone that does not tell its memory, whose browser ends pages with more. */
const MOST_ON_PHONE = 1.5e9;

/**
 * What an embedding model needs here beside the model in use.
 * @param {{size: number}} one
 * @param {?import('quern').Model} model in use
 * @returns {{need: number, fits: boolean}} need: bytes of both together
 */
export function besides({ size }, model) {
  const { need, isMuch } = verdict({ context: CONTEXT_BYTES + (model?.info.memory?.used ?? 0) }, { size });
  const isUntold = !navigator.deviceMemory && /iPhone|iPad|Mobi/.test(navigator.userAgent);
  return { need, fits: !isMuch && !(isUntold && need > MOST_ON_PHONE) };
}

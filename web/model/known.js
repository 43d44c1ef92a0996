// SPDX-License-Identifier: MIT
// The models that the page knows by name: pinned files of public repositories, with their sizes and the checksums that
// the repositories list (Git LFS). Also estimates, before any download, whether a model fits.
import { bytes } from '../shell/format.js';

export const DEMO = {
  source: new URL('./models/demo-q8_0.gguf', document.baseURI).href,
  label: 'Demo model (toy)',
  kind: 'demo',
};

const file = (quant, size, repo, name, revision, sha256) => ({
  quant, size, revision, sha256, url: `https://huggingface.co/${repo}/resolve/${revision}/${name}-${quant}.gguf`,
});

/** A model with its projector file. */
const pair = (model, vision) => ({
  ...model,
  size: model.size + vision.size,
  sha256: [model.sha256, vision.sha256],
  vision: vision.url,
});

export const KNOWN = [
  {
    label: 'Qwen3-0.6B', note: 'Small and quick, a good first one', layers: 28,
    files: [
      file('Q4_K_M', 396_705_472, 'unsloth/Qwen3-0.6B-GGUF', 'Qwen3-0.6B', '50968a4468ef4233ed78cd7c3de230dd1d61a56b',
        'ac2d97712095a558e31573f62f466a3f9d93990898b0ec79d7c974c1780d524a'),
      file('Q8_0', 639_446_688, 'Qwen/Qwen3-0.6B-GGUF', 'Qwen3-0.6B', '23749fefcc72300e3a2ad315e1317431b06b590a',
        '9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031'),
    ],
  },
  {
    label: 'Qwen3-1.7B', note: 'Knows more, a third of the speed', layers: 28,
    files: [
      file('Q4_K_M', 1_107_409_472, 'unsloth/Qwen3-1.7B-GGUF', 'Qwen3-1.7B', 'd7f544eead698dbd1f15126ef60b45a1e1933222',
        'b139949c5bd74937ad8ed8c8cf3d9ffb1e99c866c823204dc42c0d91fa181897'),
      file('Q8_0', 1_834_426_016, 'Qwen/Qwen3-1.7B-GGUF', 'Qwen3-1.7B', '90862c4b9d2787eaed51d12237eafdfe7c5f6077',
        '061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a'),
    ],
  },
  {
    label: 'Qwen3-4B', note: 'The best of these, for strong machines', layers: 36,
    files: [
      file('Q4_K_M', 2_497_280_256, 'Qwen/Qwen3-4B-GGUF', 'Qwen3-4B', 'bc640142c66e1fdd12af0bd68f40445458f3869b',
        '7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5'),
      file('Q8_0', 4_280_404_704, 'Qwen/Qwen3-4B-GGUF', 'Qwen3-4B', 'bc640142c66e1fdd12af0bd68f40445458f3869b',
        '8c2f07f26af9747e41988551106f149b03eb9b5cb6df636027b6bf6278473300'),
    ],
  },
  {
    label: 'Qwen3-VL-2B',
    note: 'Sees images and videos',
    layers: 28,
    files: [
      pair(
        file(
          'Q4_K_M',
          1_107_409_952,
          'Qwen/Qwen3-VL-2B-Instruct-GGUF',
          'Qwen3VL-2B-Instruct',
          '52d6c8ffea26cc873ac5ad116f8631268d7eb503',
          '089d75c52f4b7ffc56ba998ffc50aae89fcafc755f9e7208aacca281dca6c2ae',
        ),
        file(
          'Q8_0',
          445_053_216,
          'Qwen/Qwen3-VL-2B-Instruct-GGUF',
          'mmproj-Qwen3VL-2B-Instruct',
          '52d6c8ffea26cc873ac5ad116f8631268d7eb503',
          'f9a68fabba69c3b81e153367b2c7521030b0fa8bb0de400c9599c8e6725f9c82',
        ),
      ),
    ],
  },
  {
    label: 'Qwen3-VL-4B', note: 'Sees more, for strong machines', layers: 36,
    files: [pair(
      file('Q4_K_M', 2_497_281_664, 'Qwen/Qwen3-VL-4B-Instruct-GGUF', 'Qwen3VL-4B-Instruct', 'main',
        '66358cb18bb6b3b1b6675aa412c7a88ef01d228f481184d13668e5201c730a0a'),
      file('Q8_0', 453_974_304, 'Qwen/Qwen3-VL-4B-Instruct-GGUF', 'mmproj-Qwen3VL-4B-Instruct', 'main',
        '30ba2c7dd3127a4561b6cba9d13d0f711c91bdb38742e2f56d73c8cb596bd06d'),
    )],
  },
];

/** The quickest model with vision. */
export const SEEING = KNOWN.find(({ files }) => files[0].vision);

/** Bytes of keys and values for 4,096 positions: 8 heads of 128 columns in 16 bits, in each layer. */
const contextBytes = (layers) => layers * 4096 * 2 * 8 * 128 * 2;

/** Memory for the work of one step. */
const SCRATCH = 64e6;

/**
 * Estimates the memory that a known file needs here; panels take up to 4 % more than the file. The library's own plan,
 * made from the header, is exact.
 */
const memoryNeed = ({ size }, { layers }) => 1.04 * size + contextBytes(layers) + SCRATCH;

/** @returns {{fits: boolean, text: string}} whether a file fits in `maxMemory` bytes, with a sentence about it */
export function verdict(known, one, maxMemory) {
  const need = memoryNeed(one, known);
  const fits = need <= maxMemory;
  return {
    fits,
    text: fits ? `It needs about ${bytes(need)} of memory, which this browser allows.`
      : `It needs about ${bytes(need)} of memory, but this browser allows ${bytes(maxMemory)}: choose a smaller one.`,
  };
}

/** The known file at an address, or null. */
export function findKnown(url) {
  for (const known of KNOWN) {
    const one = known.files.find((candidate) => candidate.url === url);
    if (one) return { known, one };
  }
  return null;
}

/**
 * The model for a new visitor: the smaller file on phones and devices with little memory, as far as the browser tells.
 */
export function firstOffer() {
  const { deviceMemory = 8, userAgentData, userAgent } = navigator;
  const isPhone = userAgentData?.mobile ?? /Mobi|Android/.test(userAgent);
  const [known] = KNOWN;
  return { known, one: known.files[isPhone || deviceMemory <= 4 ? 0 : 1] };
}

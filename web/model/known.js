// SPDX-License-Identifier: MIT
// The models that the page knows by name: pinned files of public repositories, with their sizes and the checksums that
// the repositories list (Git LFS). Also estimates, before any download, whether a model fits.
import { bytes } from '../shell/format.js';
import { joined, say } from '../shell/words.js';

export const DEMO = {
  source: new URL('./models/demo-q8_0.gguf', document.baseURI).href,
  label: say`Demo model (toy)`,
  kind: 'demo',
};

const file = (quant, size, repo, name, revision, sha256) => ({
  quant, size, revision, sha256, url: `https://huggingface.co/${repo}/resolve/${revision}/${name}-${quant}.gguf`,
});

/** The files of a size of Qwen3.5. @param {[quant: string, bytes: number, sha256: string][]} rows */
const qwen35 = (size, revision, rows) => rows.map(([quant, all, sha256]) => (
  file(quant, all, `unsloth/Qwen3.5-${size}-GGUF`, `Qwen3.5-${size}`, revision, sha256)
));

/** A model with its projector file. */
const pair = (model, vision) => ({
  ...model,
  size: model.size + vision.size,
  sha256: [model.sha256, vision.sha256],
  vision: vision.url,
});

/** Bytes of keys and values for 4,096 positions: 8 heads of 128 columns in 16 bits, in each layer. */
const ofLayers = (layers) => layers * 4096 * 2 * 8 * 128 * 2;

/** Qwen3.5 has fewer of them, and remembers five states. Of 2B and 0.8B, of 4B. */
const SMALL_STATES = 4096 * 12_288 + 5 * 20_201_472;
const STATES = 4096 * 32_768 + 5 * 52_690_944;

/** `context`: bytes of a conversation of 4,096 positions. */
export const KNOWN = [
  {
    label: 'Qwen3-0.6B', note: say`Small and quick, a good first one`, context: ofLayers(28),
    files: [
      file('Q4_K_M', 396_705_472, 'unsloth/Qwen3-0.6B-GGUF', 'Qwen3-0.6B', '50968a4468ef4233ed78cd7c3de230dd1d61a56b',
        'ac2d97712095a558e31573f62f466a3f9d93990898b0ec79d7c974c1780d524a'),
      file('Q8_0', 639_446_688, 'Qwen/Qwen3-0.6B-GGUF', 'Qwen3-0.6B', '23749fefcc72300e3a2ad315e1317431b06b590a',
        '9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031'),
    ],
  },
  {
    label: 'Qwen3.5-0.8B', note: say`Newer, with longer conversations in less memory`, context: SMALL_STATES,
    files: qwen35('0.8B', '6ab461498e2023f6e3c1baea90a8f0fe38ab64d0', [
      ['Q4_K_M', 532_517_120, 'bd258782e35f7f458f8aced1adc053e6e92e89bc735ba3be89d38a06121dc517'],
      ['UD-Q4_K_XL', 558_772_480, '3177ebd67afe4438374da19e690bc1b98756f7e0fea9240e1be404336156a7b5'],
      ['Q8_0', 811_843_840, '0ad885ffd4bb022fc4f0d33a3308fa108ef8613159d3b3a67e23abca056b7a6c'],
    ]),
  },
  {
    label: 'Qwen3-1.7B', note: say`Knows more, a third of the speed`, context: ofLayers(28),
    files: [
      file('Q4_K_M', 1_107_409_472, 'unsloth/Qwen3-1.7B-GGUF', 'Qwen3-1.7B', 'd7f544eead698dbd1f15126ef60b45a1e1933222',
        'b139949c5bd74937ad8ed8c8cf3d9ffb1e99c866c823204dc42c0d91fa181897'),
      file('Q8_0', 1_834_426_016, 'Qwen/Qwen3-1.7B-GGUF', 'Qwen3-1.7B', '90862c4b9d2787eaed51d12237eafdfe7c5f6077',
        '061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a'),
    ],
  },
  {
    label: 'Qwen3.5-2B', note: say`Newer, knows more`, context: SMALL_STATES,
    files: qwen35('2B', 'f6d5376be1edb4d416d56da11e5397a961aca8ae', [
      ['Q4_K_M', 1_280_835_840, 'aaf42c8b7c3cab2bf3d69c355048d4a0ee9973d48f16c731c0520ee914699223'],
      ['UD-Q4_K_XL', 1_339_752_704, '0af96165ea615bea39a04118d63f0b6d35908aea850ee4a51aa6151d851b8b35'],
      ['Q8_0', 2_012_012_800, '1b04acba824817554f4ce23639bc8495ff70453b8fcb047900c731521021f2c1'],
    ]),
  },
  {
    label: 'Qwen3-4B', note: say`Stronger, for strong machines`, context: ofLayers(36),
    files: [
      file('Q4_K_M', 2_497_280_256, 'Qwen/Qwen3-4B-GGUF', 'Qwen3-4B', 'bc640142c66e1fdd12af0bd68f40445458f3869b',
        '7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5'),
      file('Q8_0', 4_280_404_704, 'Qwen/Qwen3-4B-GGUF', 'Qwen3-4B', 'bc640142c66e1fdd12af0bd68f40445458f3869b',
        '8c2f07f26af9747e41988551106f149b03eb9b5cb6df636027b6bf6278473300'),
    ],
  },
  {
    label: 'Qwen3.5-4B', note: say`Newer, the best of these, for strong machines`, context: STATES,
    files: qwen35('4B', 'e87f176479d0855a907a41277aca2f8ee7a09523', [
      ['Q4_K_M', 2_740_937_888, '00fe7986ff5f6b463e62455821146049db6f9313603938a70800d1fb69ef11a4'],
      ['UD-Q4_K_XL', 2_912_109_728, 'b252c5610a42ca82d20fe2a12813e9d069eed89292907e26c783eeb0bc961bc7'],
      ['Q8_0', 4_482_403_488, '10cc391b403021dd11c614679d2fd92f611c3681d29e29651b717316965d61e1'],
    ]),
  },
  {
    label: 'Qwen3-VL-2B',
    note: say`Sees images and videos`,
    context: ofLayers(28),
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
    label: 'Qwen3-VL-4B', note: say`Sees more, for strong machines`, context: ofLayers(36),
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

/** Memory for the work of one step. */
const SCRATCH = 64e6;

/**
 * Estimates the memory that a known file needs here; panels take up to 4 % more than the file. The library's own plan,
 * made from the header, is exact.
 */
const memoryNeed = ({ size }, { context }) => 1.04 * size + context + SCRATCH;

/** Gigabytes of this device's memory, as the browser tells it; 0: unknown. Some browsers say 8 for all that is more. */
const deviceMemory = () => (navigator.deviceMemory < 8 ? navigator.deviceMemory : 0);

/** Parts of the device's memory above which a model does not fit, and above which it leaves little to others. */
const ALL = 0.8;
const MUCH = 0.5;

/** What is assumed of a model that the page does not know. */
export const UNKNOWN = { context: ofLayers(28) };

/**
 * What a model needs here, by the size of its files: the only place that says so, before a load and during one.
 * @param {{context: number}} known
 * @param {{size: number}} one
 * @param {number} [maxMemory] bytes that this browser allows
 * @returns {{fits: boolean, isMuch: boolean, need: number, text: string}} isMuch: it leaves little to others
 */
export function verdict(known, one, maxMemory = Infinity) {
  const need = memoryNeed(one, known);
  const gigabytes = deviceMemory();
  const part = gigabytes ? need / (gigabytes * 2 ** 30) : 0;
  const isMuch = part > MUCH;
  const takes = bytes(need);
  const has = String(gigabytes);
  const says = (fits, ...sentences) => ({ fits, isMuch, need, text: joined(...sentences) });
  if (need > maxMemory)
    return says(false, say`It needs about ${takes} of memory, but this browser allows ${bytes(maxMemory)}: choose a smaller one.`);
  if (!isMuch) return says(true, say`It needs about ${takes} of memory, which this browser allows.`);
  return says(part <= ALL, say`It needs about ${takes} of memory.`, part > ALL
    ? say`This device has ${has} GB of memory, as the browser tells: the browser will probably close the page.`
    : say`This device has ${has} GB of memory, as the browser tells: it may be slow, and other programs should be closed.`);
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

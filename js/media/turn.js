// SPDX-License-Identifier: MIT
// EXIF's orientation: pixels as they are stored, turned and mirrored into the image as it is seen.

/** By orientation: whether sides change places; then whether columns and rows of the stored image run backwards. */
const TURNS = [
  , [false, false, false], [false, true, false], [false, true, true], [false, false, true],
  [true, false, false], [true, false, true], [true, true, true], [true, true, false],
];

/** @param {{data: Uint8Array, width: number, height: number}} image RGB or RGBA @param {number} orientation 1 to 8 */
export function turned(image, orientation) {
  if (orientation === 1) return image;
  const { data, width, height } = image;
  const [swapped, left, up] = TURNS[orientation];
  const channels = data.length / (width * height);
  const out = new Uint8Array(data.length);
  const [w, h] = swapped ? [height, width] : [width, height];
  let to = 0;
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      const [column, row] = swapped ? [y, x] : [x, y];
      let from = channels * ((up ? height - 1 - row : row) * width + (left ? width - 1 - column : column));
      for (let c = 0; c < channels; c++) out[to++] = data[from++];
    }
  }
  return { data: out, width: w, height: h };
}

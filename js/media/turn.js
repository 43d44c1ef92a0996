// SPDX-License-Identifier: MIT
// Applies an EXIF orientation: turns and mirrors stored pixels into the visible image.

/**
 * For each orientation: whether width and height are swapped; then whether columns and rows of the stored image run
 * backwards.
 */
const TURNS = [
  , [false, false, false], [false, true, false], [false, true, true], [false, false, true],
  [true, false, false], [true, false, true], [true, true, true], [true, true, false],
];

/** Pixels that are turned in one slice. */
const PART = 2 ** 18;

/**
 * @param {{data: Uint8Array, width: number, height: number}} image RGB or RGBA
 * @param {number} orientation 1 to 8
 * @param {import('./limits.js').Slice} slice
 */
export async function turned(image, orientation, slice) {
  if (orientation === 1) return image;
  const { data, width, height } = image;
  const [swapped, left, up] = TURNS[orientation];
  const channels = data.length / (width * height);
  const out = new Uint8Array(data.length);
  const [w, h] = swapped ? [height, width] : [width, height];
  const [column, row] = [left ? -channels : channels, (up ? -channels : channels) * width];
  const [dx, dy] = swapped ? [row, column] : [column, row];
  const start = channels * ((up ? (height - 1) * width : 0) + (left ? width - 1 : 0));
  const rows = Math.ceil(PART / w);
  for (let first = 0; first < h; first += rows) {
    await slice(() => {
      for (let y = first, to = channels * first * w; y < Math.min(first + rows, h); y++) {
        for (let x = 0, from = start + y * dy; x < w; x++, from += dx)
          for (let c = 0; c < channels; c++) out[to++] = data[from + c];
      }
    });
  }
  return { data: out, width: w, height: h };
}

// SPDX-License-Identifier: MIT
// The images of a result that a model with vision sees: PNG and JPEG files, a few, whose header promises no more pixels
// than the page can hold, and which the browser can decode. An image that a server has broken would otherwise fail the
// whole reply, and each later one of the conversation.

/** Most images of a result, letters of one as Base64, and pixels. */
const MOST = 4;
const LETTERS = 6e6;
const PIXELS = 16e6;

const bytesOf = (data) => Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));

/** Width times height, of the first part of a PNG file. */
function pixelsOfPng(view) {
  const isPng = view.byteLength > 24 && view.getUint32(0) === 0x89504e47 && view.getUint32(12) === 0x49484452;
  return isPng ? view.getUint32(16) * view.getUint32(20) : 0;
}

/** Width times height, of the part of a JPEG file that begins a frame (SOF0 to SOF15 without tables: C4, C8, CC). */
function pixelsOfJpeg(view) {
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8) return 0;
  for (let at = 2; at + 9 < view.byteLength && view.getUint8(at) === 0xff; at += 2 + view.getUint16(at + 2)) {
    const mark = view.getUint8(at + 1);
    const isFrame = mark >= 0xc0 && mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark);
    if (isFrame) return view.getUint16(at + 5) * view.getUint16(at + 7);
  }
  return 0;
}

/** The file of a part, or null if it is none that can be shown. */
async function pictureOf({ data }) {
  if (typeof data !== 'string' || data.length > LETTERS) return null;
  try {
    const bytes = bytesOf(data);
    const view = new DataView(bytes.buffer);
    const [png, jpeg] = [pixelsOfPng(view), pixelsOfJpeg(view)];
    const pixels = png || jpeg;
    if (!pixels || pixels > PIXELS) return null;
    const blob = new Blob([bytes], { type: png ? 'image/png' : 'image/jpeg' });
    (await createImageBitmap(blob)).close();
    return blob;
  } catch {
    return null;
  }
}

/**
 * The images of a result.
 * @param {unknown} content of a result
 * @returns {Promise<Map<object, Blob>>} by their parts
 */
export async function picturesOf(content) {
  const parts = (Array.isArray(content) ? content : []).filter((part) => part?.type === 'image').slice(0, MOST);
  const found = await Promise.all(parts.map(async (part) => [part, await pictureOf(part)]));
  return new Map(found.filter(([, blob]) => blob));
}

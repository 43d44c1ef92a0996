// SPDX-License-Identifier: MIT
// Messages as text, for files and for browsers that store no files: images and videos become Base64 with their type,
// and are restored from it.

const CHUNK = 0x8000;   // most bytes that are arguments of one call

async function toBase64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const parts = [];
  for (let at = 0; at < bytes.length; at += CHUNK) parts.push(String.fromCharCode(...bytes.subarray(at, at + CHUNK)));
  return btoa(parts.join(''));
}

const toBlob = (data, type) => new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type });

/** @param {object} message @returns {Promise<object>} a message that JSON can express */
export async function toPortable(message) {
  if (!message.media) return message;
  const media = message.media.map(async ({ blob, ...about }) => ({
    ...about,
    mime: blob.type,
    data: await toBase64(blob),
  }));
  return { ...message, media: await Promise.all(media) };
}

/**
 * Restores a message from a file, unchecked. An image that is a Blob already stays; one that cannot be read is left
 * out.
 */
export function fromPortable(value) {
  if (!Array.isArray(value?.media)) return value;
  const media = value.media.map((medium) => {
    if (medium?.blob instanceof Blob) return medium;
    try {
      return { ...medium, blob: toBlob(medium.data, String(medium.mime)) };
    } catch {
      return null;
    }
  });
  return { ...value, media };
}

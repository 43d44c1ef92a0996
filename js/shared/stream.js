// SPDX-License-Identifier: MIT
// Reads byte streams piece by piece. If the stream allows it, all pieces come in one buffer, which is passed back and
// forth; otherwise each piece has a new one, and a large file leaves as much garbage as the collector tolerates.

/** Returns a reader of pieces of at most `most` bytes. A piece is valid until the next one is requested. */
export function readerOf(stream, most = 1 << 20) {
  let reader;
  try {
    reader = stream.getReader({ mode: 'byob' });
  } catch {
    return stream.getReader();
  }
  let buffer = new ArrayBuffer(most);
  return {
    async read() {
      const piece = await reader.read(new Uint8Array(buffer));
      if (piece.value) buffer = piece.value.buffer;
      return piece;
    },
    cancel: (reason) => reader.cancel(reason),
  };
}

/** The pieces of a stream. An error of reading them, and only that, is thrown as `failed(error)`. */
export async function* piecesOf(stream, failed) {
  const reader = readerOf(stream);
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => { throw failed(error); });
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

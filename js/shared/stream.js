// SPDX-License-Identifier: MIT
// Reads byte streams piece by piece. Where the stream allows it, all pieces come in one buffer, handed back and forth;
// otherwise each is a new one, and a large file leaves as much garbage as the collector puts up with.

/** A reader of pieces of at most so many bytes, each valid until the next is asked for. */
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

/** The pieces of a stream; what goes wrong in reading them, and only that, is thrown as `failed(error)`. */
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

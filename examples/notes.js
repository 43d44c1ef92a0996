// SPDX-License-Identifier: MIT
// Notes and their vectors. They are stored in IndexedDB, so that the model reads each note once, and searched in
// memory: 10,000 of them in a few milliseconds.

const asked = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** All vectors in one array, one after the other. Vectors of length 1 are compared by their dot products. */
export class Vectors {
  #size;
  #rows = new Float32Array(0);

  /** Number of vectors. */
  count = 0;

  constructor(size) {
    this.#size = size;
  }

  add(vector) {
    const at = this.count * this.#size;
    if (at + this.#size > this.#rows.length) {
      const rows = new Float32Array(2 * at + 64 * this.#size);
      rows.set(this.#rows);
      this.#rows = rows;
    }
    this.#rows.set(vector, at);
    this.count++;
  }

  /** The nearest vectors, best first: `[{ index, score }]`. */
  search(query, n = 10) {
    const best = [];
    for (let index = 0; index < this.count; index++) {
      const score = this.#dot(query, index * this.#size);
      if (best.length === n && score <= best[n - 1].score) continue;
      const place = best.findIndex((other) => other.score < score);
      best.splice(place < 0 ? best.length : place, 0, { index, score });
      best.length = Math.min(best.length, n);
    }
    return best;
  }

  /** Uses four sums, since each addition waits for the one before it. */
  #dot(query, at) {
    const rows = this.#rows;
    let [a, b, c, d] = [0, 0, 0, 0];
    const whole = query.length & ~3;
    for (let i = 0; i < whole; i += 4) {
      a += query[i] * rows[at + i];
      b += query[i + 1] * rows[at + i + 1];
      c += query[i + 2] * rows[at + i + 2];
      d += query[i + 3] * rows[at + i + 3];
    }
    for (let i = whole; i < query.length; i++) a += query[i] * rows[at + i];
    return a + b + c + d;
  }
}

/** The notes of one model, by path: `{ path, changed, text, vector }`. */
export class Notes {
  #database;
  #kept = new Map();

  /** @param {string} name of the model; vectors of different models cannot be compared */
  static async open(name) {
    const opening = indexedDB.open(`notes of ${name}`, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('notes', { keyPath: 'path' });
    const notes = new Notes();
    notes.#database = await asked(opening);
    for (const note of await asked(notes.#store('readonly').getAll())) notes.#kept.set(note.path, note);
    return notes;
  }

  #store(mode) {
    return this.#database.transaction('notes', mode).objectStore('notes');
  }

  /** Reads new and changed files, some at a time, and forgets removed ones. */
  async update(files, embed, onProgress) {
    const there = new Map(files.map((file) => [file.webkitRelativePath || file.name, file]));
    const gone = [...this.#kept.keys()].filter((path) => !there.has(path));
    const fresh = [...there].filter(([path, file]) => this.#kept.get(path)?.changed !== file.lastModified);
    for (const path of gone) await this.#forget(path);
    for (let at = 0; at < fresh.length; at += 64) {
      onProgress(at, fresh.length);
      await this.#read(fresh.slice(at, at + 64), embed);
    }
    return fresh.length;
  }

  async #forget(path) {
    await asked(this.#store('readwrite').delete(path));
    this.#kept.delete(path);
  }

  async #read(some, embed) {
    const texts = await Promise.all(some.map(([, file]) => file.text()));
    const { vectors } = await embed(texts);
    const notes = some.map(([path, { lastModified: changed }], i) => ({
      path,
      changed,
      text: texts[i],
      vector: vectors[i],
    }));
    const store = this.#store('readwrite');
    await Promise.all(notes.map((note) => asked(store.put(note))));
    for (const note of notes) this.#kept.set(note.path, note);
  }

  /** @returns the function that searches these notes */
  index() {
    const notes = [...this.#kept.values()];
    const vectors = new Vectors(notes[0]?.vector.length ?? 0);
    for (const { vector } of notes) vectors.add(vector);
    return (query, n) => vectors.search(query, n).map(({ index, score }) => ({ ...notes[index], score }));
  }
}

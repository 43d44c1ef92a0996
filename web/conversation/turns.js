// SPDX-License-Identifier: MIT
// The conversation as a list: what was said, its nodes in the log, what is stored, and what the model still reads.
// When the conversation outgrows the context, the oldest turns are left out (and dimmed), half a context at once:
// leaving out one turn each time would make the model read everything else anew every time.
import { byId } from '../shell/dom.js';
import { writeChat } from './store.js';

/** Share of the context at which old turns are left out, and the share that is kept then. */
const FULL = 0.8;
const KEPT = 0.5;

export class Turns {
  #log = byId('log');
  #entries = [];  // {role, content, thinking?, thoughtMs?, note?, node}
  #first = 0;     // index of the first entry the model still reads
  #used = 0;      // tokens of the context after the last reply

  get isEmpty() { return this.#entries.length === 0; }

  /** What the conversation began with. */
  get title() { return this.#entries[0]?.content ?? ''; }

  /** Index of the visitor's last message, -1 without one. */
  get lastQuestion() { return this.#entries.findLastIndex((entry) => entry.role === 'user'); }

  content(index) {
    return this.#entries[index].content;
  }

  /** Appends an entry; its node goes to the end of the log, where it may be already. */
  add(entry) {
    this.#log.append(entry.node);
    this.#entries.push(entry);
  }

  /** Takes back everything from entry `index` on, with whatever else the log shows there. */
  truncate(index) {
    const keep = this.#entries[index - 1]?.node ?? null;
    while (this.#log.lastChild && this.#log.lastChild !== keep) this.#log.lastChild.remove();
    this.#entries.length = Math.max(0, index);
    this.#setFirst(Math.min(this.#first, this.#entries.length));
  }

  /** @returns {boolean} whether it was stored */
  save() {
    return writeChat(this.#entries);
  }

  /** The messages to send: an unanswered or empty turn says nothing to the model. */
  prompt(system) {
    const turns = this.#entries.slice(this.#first).filter((entry) => entry.content);
    const messages = turns.map(({ role, content, thinking }) => (thinking ? { role, content, thinking } : { role, content }));
    return system ? [{ role: 'system', content: system }, ...messages] : messages;
  }

  /** @param {number} tokens the context holds after a reply; 0 for a model that has read nothing yet */
  setUsed(tokens) {
    this.#used = tokens;
    if (tokens === 0) this.#setFirst(0);
  }

  /** Leaves out old turns before the context is full, judging the new message by the tokens per letter so far. */
  makeRoom(contextSize) {
    const known = this.#letters() - this.#entries.at(-1).content.length;
    if (!this.#used || !known) return;
    const tokensPerLetter = this.#used / known;
    if (this.#letters() * tokensPerLetter < FULL * contextSize) return;
    while (this.#letters() * tokensPerLetter > KEPT * contextSize && this.leaveOut());
  }

  /** Leaves out the oldest turn still read. @returns {boolean} false when only the last message is left */
  leaveOut() {
    const next = this.#entries.findIndex((entry, i) => i > this.#first && entry.role === 'user');
    if (next < 0) return false;
    this.#setFirst(next);
    return true;
  }

  /** Length of what the model reads. */
  #letters() {
    return this.#entries.slice(this.#first).reduce((sum, entry) => sum + entry.content.length, 0);
  }

  #setFirst(index) {
    this.#first = index;
    this.#entries.forEach(({ node }, i) => {
      node.classList.toggle('left-out', i < index);
      node.classList.toggle('first-read', i === index && index > 0);
    });
  }
}

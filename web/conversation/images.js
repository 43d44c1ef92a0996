// SPDX-License-Identifier: MIT
// The images and videos of the next message: added by the button, by paste or by drop, shown small with their numbers
// of tokens, and removable. Unsent ones stay with their conversation.
import { announce, byId, element, iconButton } from '../shell/dom.js';
import { count } from '../shell/format.js';
import { thumb } from '../message/media.js';

/** Most images of a prompt, and most bytes of each. */
const MOST = 64;
const LARGEST = 64 * 2 ** 20;

/** @typedef {import('../message/media.js').Medium} Medium */

export class Images {
  #list = byId('attached');
  #media = [];
  #events;

  /**
   * @param {{onChange: () => void, onPick: () => void, costOf: (medium: Medium) => Promise<number>, onRefuse:
   * (sentence: string) => void}} events
   */
  constructor(events) {
    this.#events = events;
  }

  /** @returns {Medium[]} */
  get media() { return this.#media; }

  /** @param {Medium[]} media */
  set(media) {
    this.#media = media;
    this.#list.replaceChildren(...media.map((medium) => this.#row(medium)));
    this.#list.hidden = media.length === 0;
    this.#events.onChange();
  }

  /** Adds images and videos, as many as there is room for. @param {Medium[]} found */
  add(found) {
    const fit = found.filter(({ blob }) => blob.size <= LARGEST).slice(0, MOST - this.#media.length);
    if (fit.length < found.length) this.#events.onRefuse(`A message takes ${MOST} images, of 64 MB each at most.`);
    if (fit.length) {
      this.#pick([...this.#media, ...fit]);
      announce(fit.length === 1 ? `${fit[0].name} is added.` : `${fit.length} images are added.`);
    }
  }

  #pick(media) {
    this.set(media);
    this.#events.onPick();
  }

  #row(medium) {
    const cost = element('span', { className: 'cost' });
    this.#events.costOf(medium).then(
      (tokens) => {
        cost.textContent = tokens ? `${count(tokens)} tokens` : '';
      },
      (error) => {
        cost.textContent = 'cannot be read';
        cost.title = error.message;
      },
    );
    const remove = iconButton('close', `Remove ${medium.name}`, () => {
      this.#pick(this.#media.filter((one) => one !== medium));
      byId('input').focus();
    });
    return element('li', {}, thumb(medium), cost, remove);
  }
}

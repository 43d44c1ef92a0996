// SPDX-License-Identifier: MIT
// Shows a message of the visitor: the bubble and its buttons. A very long message is folded.
import { button, copyButton, element, fromTemplate, iconButton } from '../shell/dom.js';
import { plural, say, sayNodes } from '../shell/words.js';
import { setBranches } from './branches.js';
import { thumbInMessage } from './media.js';

/** Messages with more characters or lines than this are folded. */
const LONG = 1500;
const LINES = 24;

/** How the passages of a text were found, by their first line (document/passages.js). */
const nearest = (passages) =>
  (/^.* meaning\)/.test(passages) ? say`passages near by words and meaning` : say`the nearest passages`);

/** An attached text, or the passages of it that are sent, folded. */
const attached = ({ name, text, passages }) =>
  element(
    'details',
    { className: 'attached-text' },
    element('summary', {}, ...sayNodes`${element('bdi', {}, name)}, ${passages ? nearest(passages)
      : plural(text.length, '{1} character', '{1} characters')}`),
    element('pre', { tabIndex: 0 }, passages ?? text),
  );

export class UserMessage {
  node = fromTemplate('t-user');
  #actions;

  /** @param {object} message @param {{onEdit: Function, onDelete: Function, onAnswer: Function, onBranch: Function}} actions */
  constructor(message, actions) {
    this.#actions = actions;
    const { content, media = [], texts = [] } = message;
    const bubble = this.node.querySelector('.bubble');
    bubble.hidden = !content;
    if (media.length) bubble.before(element('div', { className: 'thumbs' }, ...media.map(thumbInMessage)));
    bubble.before(...texts.map(attached));
    bubble.textContent = content;
    if (content.length > LONG || content.split('\n', LINES + 1).length > LINES) this.#fold(bubble);
    const answer = iconButton('retry', say`Answer this`, () => actions.onAnswer(message));
    answer.classList.add('only-last');
    this.node.querySelector('.tools').append(copyButton(() => content, say`Copy message`),
      iconButton('edit', say`Edit and send again`, () => actions.onEdit(message)),
      iconButton('delete', say`Delete from here on`, () => actions.onDelete(message)), answer);
  }

  setBranches(siblings, message) {
    setBranches(this.node.querySelector('.tools'), siblings, message, this.#actions.onBranch);
  }

  #fold(bubble) {
    bubble.classList.add('folded');
    const more = button('', () => show(!bubble.classList.contains('folded')), 'link-button unfold');
    const show = (folded) => {
      bubble.classList.toggle('folded', folded);
      more.textContent = folded ? say`Show all` : say`Show less`;
      more.setAttribute('aria-expanded', String(!folded));
    };
    show(true);
    bubble.after(more);
  }
}

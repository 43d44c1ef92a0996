// SPDX-License-Identifier: MIT
// Two models on one question: another model on this device answers the last question, too, and both replies stand side
// by side, with their models and speeds. The other model is loaded after the first has written, since memory may hold
// only one, and stays in use; a button goes back. The replies are versions of one message, as those of one model are,
// so nothing else is stored. What is shown here are copies of what the log shows.
import { styled } from '../../message/late/styled.js';
import { byId, button, element } from '../../shell/dom.js';
import { showSheet } from '../../shell/sheet.js';
import { joined, say } from '../../shell/words.js';

/** Milliseconds between two copies of a growing reply. */
const PACE_MS = 250;

const ready = styled('compare.css');

/** A copy of a shown reply, without what only its original can do. */
function copyOf(node) {
  const copy = node.querySelector('.prose').cloneNode(true);
  for (const gone of copy.querySelectorAll('button')) gone.remove();
  for (const marked of copy.querySelectorAll('[id], [data-note]')) {
    marked.removeAttribute('id');
    marked.removeAttribute('data-note');
  }
  return copy;
}

/** A column: the model, its speed, and the reply. */
class Column {
  node = element('article', { className: 'column-of-two' });
  #name;

  constructor(name) {
    this.#name = name;
    this.node.setAttribute('aria-label', name);
  }

  /** Shows what a node of the log shows now. */
  show(node) {
    const caption = node.querySelector('.caption').textContent || this.#name;
    const told = ['.waiting', '.aside', '.card-message'].map((part) => node.querySelector(part)?.textContent);
    const said = told.filter(Boolean).join(' ');
    const hint = element('p', { className: 'hint', hidden: !said }, said);
    this.node.replaceChildren(element('h3', {}, caption), hint, copyOf(node));
  }
}

/** Copies the last reply of the log into a column until some work ends, while its conversation is shown. */
async function follow(column, isShown, work) {
  const log = byId('log');
  const copy = () => {
    const last = log.lastElementChild;
    if (isShown() && last?.matches('.assistant')) column.show(last);
  };
  const timer = setInterval(() => { if (column.node.isConnected) copy(); }, PACE_MS);
  await work;
  clearInterval(timer);
  copy();
}

/**
 * @param {import('../../model/session.js').Choice} choice the other model, which is on this device
 * @param {object} page
 * @param {import('../../model/session.js').Session} page.session
 * @param {import('../../model/loading.js').Loading} page.loading
 * @param {import('../talks.js').Talks} page.talks
 * @param {import('../chat.js').Chat} page.chat
 * @param {import('../../shell/tray.js').Tray} page.tray
 */
export async function compare(choice, { session, loading, talks, chat, tray }) {
  const talk = talks.current;
  const { role, error, model } = talk.path.at(-1) ?? {};
  const before = session.choice;
  if (role !== 'assistant' || error || talk.run) {
    const sentence = say`Ask something first: then the other model answers the same question.`;
    return tray.passing('compare', sentence, [], 12_000);
  }
  const left = new Column(model || say`The first reply`);
  left.show(byId('log').lastElementChild);
  await Promise.all([ready, loading.load(choice)]);
  if (session.choice?.source !== choice.source || talks.current !== talk || talk.run) return undefined;
  const right = new Column(choice.label);
  const question = talk.path.findLast((message) => message.role === 'user');
  const after = element('div', { className: 'stack', hidden: true });
  const asked = element('p', { className: 'asked', dir: 'auto' }, question.content);
  const pair = element('div', { className: 'pair' }, left.node, right.node);
  const dialog = showSheet('compare', say`Two replies`, asked, pair, after);
  dialog.classList.add('of-two');
  const isShown = () => talks.current === talk;
  await follow(right, isShown, chat.regenerate());
  if (!isShown()) return dialog.close();      // deleted in another tab
  const actions = element('div', { className: 'actions' }, button(say`Close`, () => dialog.close(), 'button primary'));
  if (before) actions.append(button(say`Go back to ${before.label}`, () => {
    dialog.close();
    loading.load(before);
  }));
  const inUse = say`${choice.label} is in use now.`;
  const hint = talk.hasFailed ? inUse
    : joined(inUse, say`Both are versions of one reply; its arrows turn between them.`);
  after.append(element('p', { className: 'hint' }, hint), actions);
  after.hidden = false;
  return undefined;
}

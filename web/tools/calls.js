// SPDX-License-Identifier: MIT
// The calls of a reply: kept with its message, and shown folded like thinking, with their arguments and results. The
// `steps` of a message are the texts before calls, and the calls with their results; images of results are its `media`,
// each with the id of its `call`.
import { element } from '../shell/dom.js';
import { say } from '../shell/words.js';
import { cardOf, progressOf } from './pending.js';

/** Adds the images of a result to the message. */
function addImages(message, { id, name }, parts) {
  const images = parts.filter(({ type }) => type === 'image');
  const media = images.map(({ image }) => ({ type: 'image', name: say`Image of ${name}`, blob: image, call: id }));
  if (media.length) message.media = [...message.media ?? [], ...media];
}

/** Takes one event of a reply that is neither text nor thinking. */
export function take(message, { type, id, name, arguments: given, content, parts = [], isError }) {
  if (type === 'tool-call') {
    const { content: said, thinking } = message;
    const isNext =
      said ||
      thinking ||
      !message.steps?.length ||
      message.steps.at(-1).calls.every(({ result }) => result !== undefined);
    if (isNext) {
      message.steps = [...message.steps ?? [], { content: said, thinking, calls: [] }];
      Object.assign(message, { content: '', thinking: '' });
    }
    message.steps.at(-1).calls.push({ id, name, arguments: JSON.stringify(given) });
  } else if (type === 'tool-result') {
    const call = message.steps.flatMap(({ calls }) => calls).findLast((one) => one.id === id);
    Object.assign(call, { result: content, failed: isError });
    addImages(message, call, parts);
  }
}

const part = (label, text) => [element('p', { className: 'hint' }, label), element('pre', { dir: 'ltr' }, text)];

/** The program in the arguments of a call, if it has one. */
function programOf({ name, arguments: given }) {
  try {
    return name === 'run_javascript' ? String(JSON.parse(given).code) : null;
  } catch {
    return null;      // damaged in the store
  }
}

/** The line of a call. `isOver`: its reply has ended. */
function summaryOf({ id, name, result, failed }, isOver) {
  if (result !== undefined) return failed ? say`${name} has failed` : say`Called ${name}`;
  if (isOver) return say`The call of ${name} has no result`;
  const now = progressOf(id);
  return now ? say`Calling ${name}: ${now}` : say`Calling ${name}…`;
}

/** A view without content. */
function callView() {
  const about = { className: 'thought', tabIndex: 0, role: 'group', 'aria-label': say`Call` };
  const view = element('details', { className: 'thinking call' }, element('summary'), element('div', about));
  view.dataset.testid = 'call';
  return view;
}

/** Shows what has changed of a call. Its parts stay, so that the focus and a selection stay, too. */
function update(view, call, pictures, isOver) {
  const { arguments: given, result, failed } = call;
  const [summary, about] = view.children;
  const said = summaryOf(call, isOver);
  if (summary.textContent !== said) summary.textContent = said;
  const shown = `${result !== undefined} ${pictures.length}`;
  if (view.dataset.shown === shown) return;
  view.dataset.shown = shown;
  const program = programOf(call);
  const asked = program === null ? part(say`Arguments`, given) : part(say`Program`, program);
  const more = result === undefined ? [] : part(failed ? say`Error` : say`Result`, result);
  about.replaceChildren(...asked, ...more, ...pictures.map((picture) => picture()));
}

/**
 * Shows the calls of a message. Existing views stay open or closed.
 * @param {(medium: object) => Element} picture shows an image
 * @param {boolean} isOver whether the reply has ended
 */
export function show(node, { steps = [], media = [] }, picture, isOver) {
  const picturesOf = ({ id }) => media.filter(({ call }) => call === id).map((medium) => () => picture(medium));
  const calls = steps.flatMap((step) => step.calls);
  const views = [...node.querySelectorAll('.call')];
  for (const [i, call] of calls.entries()) {
    const view = views[i] ?? callView();
    update(view, call, picturesOf(call), isOver);
    if (!views[i]) node.querySelector('.waiting').before(view);
    const card = cardOf(call.id);
    if (card && view.nextSibling !== card) {
      view.open = true;
      view.after(card);
    }
  }
}

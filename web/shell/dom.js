// SPDX-License-Identifier: MIT
// The DOM helpers of the page. Texts become text nodes only. Nothing here turns a string into markup, and no other file
// creates elements by other means.
import { say } from './words.js';

/** The element with this id; the page's markup is fixed, so a missing one is a programming error. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. `attributes` named like a property (className, hidden, onclick ...) are set as such.
 * @param {string} tag
 * @param {object} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

/** One image of the sprite in index.html. */
function icon(name, className = 'icon small') {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', className);
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#i-${name}`);
  svg.append(use);
  return svg;
}

/** The first element of a <template>, ready to be filled. */
export const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

/** A button with a word. */
export const button = (text, onclick, className = 'button') =>
  element('button', { type: 'button', className, onclick }, text);

/** A button with an icon, and a name for visitors who do not see it. */
export function iconButton(name, label, onclick) {
  const node = element('button', { type: 'button', className: 'tool', title: label, onclick }, icon(name));
  node.setAttribute('aria-label', label);
  return node;
}

/**
 * Copies text and shows for a moment whether that worked.
 * @param {() => Promise<Blob>} [getHtml] the same as rich text, for programs that take it
 */
export function copyButton(getText, label = say`Copy`, getHtml = undefined) {
  const writeRich = async () => {
    const plain = new Blob([getText()], { type: 'text/plain' });
    await navigator.clipboard.write([new ClipboardItem({ 'text/plain': plain, 'text/html': getHtml() })]);
  };
  const writePlain = () => navigator.clipboard.writeText(getText());
  const node = iconButton('copy', label, async () => {
    const writing = getHtml ? writeRich().catch(writePlain) : writePlain();
    const worked = await writing.then(() => true, () => false);
    const said = worked ? say`Copied` : say`Copying is not allowed here`;
    show(worked ? 'check' : 'alert', said);
    announce(said);
    setTimeout(() => show('copy', label), 1600);
  });
  const show = (name, text) => {
    node.replaceChildren(icon(name));
    node.title = text;
    node.setAttribute('aria-label', text);
  };
  return node;
}

/** Offers a text as a download. @param {string | Blob} content */
export function saveFile(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  element('a', { href: url, download: name.replaceAll(/[\\/:*?"<>|]/g, ' ') }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Whether a key belongs to an input method, which composes a character (229 is what Safari sends then). */
export const isComposed = ({ isComposing, keyCode }) => isComposing || keyCode === 229;

/** Tells a sentence to screen readers only. The pause makes a repeated sentence count as new. */
export function announce(text) {
  const node = byId('announcer');
  node.textContent = '';
  setTimeout(() => { node.textContent = text; }, 60);
}

// SPDX-License-Identifier: MIT
// What the documentation does beyond being read: the search dialog (button, `/`, Ctrl+K), the theme switch, and a copy button on
// every piece of code. All of it is extra: without this script every page is there and every link leads on.

import { byId, copyButton, element } from '../../web/shell/dom.js';
import { themeSwitch } from '../../web/shell/theme.js';
import { excerpt, find } from './find.js';

const base = new URL('./', import.meta.url);
const [dialog, input, list, count] = ['search', 'search-input', 'search-results', 'search-count'].map(byId);

let index;

/** Fetched once somebody searches. */
async function load() {
  index ??= fetch(new URL('search.json', base)).then((response) => response.json());
  return index;
}

/** A text in which the words that were typed are marked. */
function marked(text, query) {
  const words = query.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return text.split(new RegExp(`(${words.join('|')})`, 'i')).map((part, i) => (i % 2 ? element('mark', {}, part) : part));
}

function row(entry, query) {
  const { title, kind, href } = entry;
  const link = element('a', { href: new URL(href, base).href },
    element('span', { className: 'found-title' }, ...marked(title, query)), element('span', { className: 'found-kind' }, kind),
    element('span', { className: 'found-text' }, ...marked(excerpt(entry, query), query)));
  link.addEventListener('click', () => dialog.close());
  return element('li', {}, link);
}

async function show() {
  const query = input.value.trim();
  const entries = await load();
  if (query !== input.value.trim()) return;
  const found = find(entries, query);
  list.replaceChildren(...found.map((entry) => row(entry, query)));
  count.textContent = query ? `${found.length || 'Nothing'} found` : '';
}

function open() {
  if (dialog.open) return;
  dialog.showModal();
  input.select();
  load().then(show, () => { count.textContent = 'The index could not be fetched.'; });
}

/** Arrows go through the field and the results as through one list. */
function step(event) {
  const places = [input, ...list.querySelectorAll('a')];
  const at = places.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (at < 0 || !places[next]) return;
  event.preventDefault();
  places[next].focus();
}

const isTyping = ({ target }) => target.closest('input, textarea, [contenteditable]');

function startSearch() {
  byId('search-open').hidden = false;
  byId('search-open').addEventListener('click', open);
  byId('search-close').addEventListener('click', () => dialog.close());
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') list.querySelector('a')?.click();
  });
  dialog.addEventListener('keydown', step);
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener('keydown', (event) => {
    const isAsked = (event.key === '/' && !isTyping(event) && !event.ctrlKey && !event.metaKey) || (event.key === 'k' && (event.ctrlKey || event.metaKey));
    if (!isAsked) return;
    event.preventDefault();
    open();
  });
}

startSearch();
document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' });
byId('theme').hidden = false;
themeSwitch();
for (const figure of document.querySelectorAll('figure.code')) figure.append(copyButton(() => figure.querySelector('code').textContent));
// What scrolls on its own must be reachable by the keyboard.
for (const node of document.querySelectorAll('pre, .wide')) if (node.scrollWidth > node.clientWidth) node.tabIndex = 0;

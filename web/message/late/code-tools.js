// SPDX-License-Identifier: MIT
// What blocks of code have besides their text: colours, a button that saves them as a file, and for HTML and SVG a
// preview. Fetched with the first block. Colours are those of sugar-high, whose time grows faster than some texts: it
// gets pieces of some thousand characters, each of which is coloured once it is complete, and never a very long line.
import { SugarHigh, tokenize } from 'sugar-high/core';
import { lang, languages } from 'sugar-high/lang';
import { iconButton, saveFile } from '../../shell/dom.js';
import { say } from '../../shell/words.js';
import { openPreview } from './preview.js';
import { addIcon, styled } from './styled.js';

/** A piece ends at the last empty line before this many characters, or else at the last line. */
const PIECE = 4096;

/** A block with a longer line is not coloured. */
const MAX_LINE = 1000;

/** Milliseconds after which a line that does not go on is coloured, too. */
const PAUSE_MS = 400;

/** Kinds of tokens that have a colour of their own; others have the colour of text. */
const COLOURED = new Set(['keyword', 'string', 'class', 'property', 'entity', 'comment']);

/** Languages that a preview can show. */
const SHOWN = ['html', 'svg', 'xhtml', 'htm'];

styled('code-tools.css');
addIcon('save', 'M12 4v11M7.5 10.5 12 15l4.5-4.5M5 19.5h14');
addIcon('preview', 'M3 12q9-13 18 0-9 13-18 0zM12 9a3 3 0 1 0 .1 0');

/** The language that a block names. @returns {{extension: string, config?: object} | undefined} */
function languageOf({ lang: named = '' }) {
  const word = named.trim().split(/[\s,{:]/, 1)[0].toLowerCase();
  const id = lang(word === 'svg' || word === 'vue' ? 'html' : word);
  return languages.find((one) => one.id === id);
}

/** Tokens with neighbours of the same colour as one. @returns {[string, string][]} kind ('' has none) and text */
function coloured(text, config) {
  const found = [];
  for (const [type, value] of tokenize(text, config)) {
    const name = SugarHigh.TokenTypes[type];
    const kind = COLOURED.has(name) ? name : '';
    if (found.at(-1)?.[0] === kind) found.at(-1)[1] += value;
    else found.push([kind, value]);
  }
  return found;
}

/** The end of the first complete piece of a text; 0 if there is none. */
function pieceEnd(text) {
  if (text.length < 2 * PIECE) return 0;
  const end = text.lastIndexOf('\n\n', PIECE) + 2;
  return end > PIECE / 4 ? end : text.lastIndexOf('\n', PIECE) + 1;
}

/** Colours one block as it grows. */
class Colours {
  #node;
  #grown;             // text node of what is not coloured yet
  #piece = 0;         // where the piece begins that may still change
  #tokens = [];       // of that piece
  #nodes = [];
  #timer = 0;

  constructor(node, grown) {
    this.#node = node;
    this.#grown = grown;
  }

  /** Colours all complete lines now, and the last one soon. */
  grow() {
    clearTimeout(this.#timer);
    const { text } = this.#node.token;
    if (!text.startsWith(this.#node.done) || !this.#node.done) this.#restart();
    const end = text.lastIndexOf('\n') + 1;
    if (end > this.#node.done.length) this.#colour(text.slice(0, end));
    if (text.length > this.#node.done.length) this.#timer = setTimeout(() => this.#colour(text), PAUSE_MS);
  }

  #restart() {
    this.#piece = 0;
    [this.#tokens, this.#nodes] = [[], []];
  }

  #colour(text) {
    const language = languageOf(this.#node.token);
    if (!language || text.slice(this.#piece).split('\n').some((line) => line.length > MAX_LINE)) return;
    for (let end = pieceEnd(text.slice(this.#piece)); end > 0; end = pieceEnd(text.slice(this.#piece))) {
      this.#put(text.slice(this.#piece, this.#piece + end), language);
      this.#piece += end;
      [this.#tokens, this.#nodes] = [[], []];
    }
    this.#put(text.slice(this.#piece), language);
    this.#node.done = text;
    this.#grown.data = this.#node.token.text.slice(text.length);
  }

  /** Shows a piece; the nodes of unchanged tokens at its beginning stay. */
  #put(text, { config }) {
    const tokens = coloured(text, config);
    let same = 0;
    while (same < this.#tokens.length && this.#tokens[same].join() === tokens[same]?.join()) same++;
    for (const gone of this.#nodes.splice(same)) gone.remove();
    for (const [kind, value] of tokens.slice(same)) {
      const node = kind ? document.createElement('span') : document.createTextNode(value);
      if (kind) Object.assign(node, { className: `sh-${kind}`, textContent: value });
      this.#nodes.push(node);
      this.#grown.before(node);
    }
    this.#tokens = tokens;
  }
}

/** Adds to a block of code what it has besides its text. @param {Text} grown its text node, at the end */
export function addTo(node, grown) {
  const save = () => {
    const { lang: word, text } = node.token;
    const ending = /^svg\b/i.test(word) ? 'svg' : languageOf(node.token)?.extension ?? 'txt';
    saveFile(ending === 'dockerfile' ? 'Dockerfile' : `code.${ending}`, text, 'text/plain');
  };
  const head = node.querySelector('.code-head');
  const copy = head.lastChild;
  const buttons = document.createElement('span');
  head.append(buttons);
  buttons.className = 'code-buttons';
  buttons.append(iconButton('save', say`Save code as a file`, save), copy);
  const colours = new Colours(node, grown);
  const preview = iconButton('preview', say`Preview`, () => openPreview(node.token.text));
  node.colour = () => {
    const word = node.token.lang?.trim().split(/\s/, 1)[0].toLowerCase();
    if (SHOWN.includes(word) && !preview.isConnected) buttons.prepend(preview);
    colours.grow();
  };
  node.colour();
}

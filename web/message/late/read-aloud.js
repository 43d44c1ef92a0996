// SPDX-License-Identifier: MIT
// Reads a reply aloud, by voices of this device only: others send the text to a server of the browser's maker. Without
// such a voice there is no button. The script of the text tells its language, or else the page's. Code and formulas are
// skipped with a word. The text is spoken in pieces, since browsers stop in long ones. Fetched with the first reply
// that has ended, where there is such a voice.
import { announce, iconButton } from '../../shell/dom.js';
import { say } from '../../shell/words.js';
import { addIcon } from './styled.js';

/** Longest piece that is spoken at once, in characters. */
const PIECE = 240;

/** Scripts that tell the language; of Han alone Chinese, since Japanese has letters of its own. */
const SCRIPTS = [
  ['ja', /[\p{Script=Hiragana}\p{Script=Katakana}]/gu], ['ko', /\p{Script=Hangul}/gu], ['zh', /\p{Script=Han}/gu],
  ['ru', /\p{Script=Cyrillic}/gu], ['ar', /\p{Script=Arabic}/gu], ['he', /\p{Script=Hebrew}/gu],
  ['el', /\p{Script=Greek}/gu], ['hi', /\p{Script=Devanagari}/gu], ['th', /\p{Script=Thai}/gu],
];

/** Elements that are skipped, and what is said instead. */
const SKIPPED = [
  ['.code', `\n${say`Code`}.\n`], ['div.formula', `\n${say`Formula`}.\n`], ['.formula', ` ${say`Formula`} `],
  ['button, .host', ''],
];

/** Elements that end a sentence. */
const BLOCKS = /^(?:P|LI|H[1-6]|TD|TH|TR|DIV|BLOCKQUOTE|UL|OL|HR)$/;

addIcon('aloud', 'M4.5 9.5v5h3.5l4.5 4V5.5l-4.5 4zM16 9a4.2 4.2 0 0 1 0 6M18.5 6.5a7.8 7.8 0 0 1 0 11');

const { speechSynthesis } = globalThis;

const localVoices = () => speechSynthesis.getVoices().filter(({ localService }) => localService);

/** The words of a reply as they are read. @param {Element} prose */
export function wordsOf(prose) {
  const parts = [];
  const skipped = (node) => SKIPPED.find(([selector]) => node.matches(selector));
  const walker = document.createTreeWalker(prose, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
    else if (skipped(node)) {
      parts.push(skipped(node)[1]);
      return NodeFilter.FILTER_REJECT;
    } else if (BLOCKS.test(node.tagName)) parts.push('\n');
    return NodeFilter.FILTER_ACCEPT;
  });
  while (walker.nextNode());
  return parts.join('').split('\n').map((line) => line.replaceAll(/\s+/g, ' ').trim()).filter(Boolean);
}

/** The language of a text: that of the script of a fifth of its letters, or the page's. */
export function languageOf(text) {
  const sample = text.slice(0, 2000);
  const letters = sample.match(/\p{L}/gu)?.length ?? 0;
  const [found] = SCRIPTS.find(([, script]) => (sample.match(script)?.length ?? 0) > letters / 5) ?? [];
  return found ?? document.documentElement.lang.slice(0, 2);
}

/** Cuts a line behind sentences, or else words, so that no piece is too long. */
export function piecesOf(line) {
  const pieces = [];
  let rest = line;
  while (rest.length > PIECE) {
    const head = rest.slice(0, PIECE);
    const end = Math.max(...['. ', '! ', '? ', '。', '！', '？'].map((sign) => head.lastIndexOf(sign) + 1));
    const at = end || head.lastIndexOf(' ') + 1 || PIECE;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest].map((piece) => piece.trim()).filter(Boolean);
}

/** How often it is checked whether the reply is still shown, in ms. */
const LOOK_MS = 300;

let stopLast = () => {};

/** Speaks the lines of a reply. @returns {?Promise<void>} resolves at the end; null: there is no voice for it */
function speak(lines, isWanted) {
  const language = languageOf(lines.join('\n'));
  const voices = localVoices().filter(({ lang }) => lang.slice(0, 2).toLowerCase() === language);
  const voice = voices.find((one) => one.default) ?? voices[0];
  if (!voice) return null;
  const pieces = lines.flatMap(piecesOf);
  return new Promise((done) => {
    const next = () => {
      const text = pieces.shift();
      if (!text || !isWanted()) return done();
      const utterance = Object.assign(new SpeechSynthesisUtterance(text), { voice, lang: voice.lang });
      utterance.onend = next;
      utterance.onerror = () => done();
      return speechSynthesis.speak(utterance);
    };
    next();
  });
}

/** Adds the button to a reply. @param {Element} node of the reply */
export function offerToRead(node) {
  const prose = node.querySelector('.prose');
  let now = null;     // token of the reading; the voices tell the end of one that was cancelled later
  const show = (reading) => {
    now = reading;
    start.hidden = reading !== null;
    stop.hidden = reading === null;
  };
  const end = () => {
    if (!now) return;
    const held = document.activeElement === stop;
    show(null);
    speechSynthesis.cancel();
    if (held) start.focus();
  };
  const begin = async () => {
    stopLast();
    const reading = {};
    show(reading);
    const spoken = speak(wordsOf(prose), () => now === reading);
    if (!spoken) {
      show(null);
      return announce(say`This device has no voice for this language.`);
    }
    stop.focus();
    stopLast = end;
    const watch = setInterval(() => { if (!node.isConnected) end(); }, LOOK_MS);
    await spoken;
    clearInterval(watch);
    return now === reading ? end() : undefined;
  };
  const start = iconButton('aloud', say`Read aloud`, begin);
  const stop = iconButton('stop', say`Stop reading`, end);
  stop.hidden = true;
  node.querySelector('.caption').before(start, stop);
}

addEventListener('pagehide', () => speechSynthesis.cancel());

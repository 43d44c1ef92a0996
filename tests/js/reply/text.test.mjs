// SPDX-License-Identifier: MIT
// Stop texts and thinking: the outcome never depends on how a text is cut into pieces (T13 - T15).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplyText, StopFilter } from '../../../js/reply/text.js';
import { random } from '../../fixtures/random.mjs';

function filter(stops, pieces) {
  const one = new StopFilter(stops);
  let text = '';
  for (const piece of pieces) {
    const step = one.push(piece);
    text += step.text;
    if (step.stopped) return { text, stopped: true };
  }
  return { text: text + one.end(), stopped: false };
}

/** The definition: read letter by letter; the first stop text that is complete ends it, the longest if there are several. */
function reference(stops, text) {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => text.slice(0, end).endsWith(stop)).sort((a, b) => b.length - a.length)[0];
    if (found) return { text: text.slice(0, end - found.length), stopped: true };
  }
  return { text, stopped: false };
}

test('a stop text over several pieces, and one that diverges', () => {
  assert.deepEqual(filter(['STOP'], ['abcST', 'OP', 'def']), { text: 'abc', stopped: true });
  assert.deepEqual(filter(['STO P'], ['a', 'STO', 'PX']), { text: 'aSTOPX', stopped: false });
  assert.deepEqual(filter(['STOP'], ['abcSTO']), { text: 'abcSTO', stopped: false });
  assert.deepEqual(filter(['all'], ['a', 'll']), { text: '', stopped: true });
  assert.deepEqual(filter(['aab'], ['a', 'a', 'a', 'b']), { text: 'a', stopped: true });
  assert.deepEqual(filter(['😀!'], ['x😀', '!']), { text: 'x', stopped: true });
});

test('nothing that may become a stop text is shown too early', () => {
  const one = new StopFilter(['\n\n', 'User:']);
  assert.equal(one.push('Hi\n').text, 'Hi');
  assert.equal(one.push('Us').text, '\n');
  assert.equal(one.push('er').text, '');
  assert.deepEqual(one.push(':'), { text: '', stopped: 'User:' });
});

test('random texts, stops and cuts give what reading letter by letter gives', () => {
  const next = random(1);
  const word = (max) => Array.from({ length: 1 + Math.floor(next() * max) }, () => 'ab '[Math.floor(next() * 3)]).join('');
  for (let round = 0; round < 3000; round++) {
    const stops = Array.from({ length: 1 + Math.floor(next() * 3) }, () => word(5));
    const pieces = Array.from({ length: 1 + Math.floor(next() * 8) }, () => word(4));
    assert.deepEqual(filter(stops, pieces), reference(stops, pieces.join('')), JSON.stringify({ stops, pieces }));
  }
});

const OPEN = 1;
const CLOSE = 2;
const THINKING = { open: OPEN, close: CLOSE, type: 'thinking' };

/** Numbers are marks, strings are text. */
function replyText(parts, { stops = [], channels = [THINKING], inside = null } = {}) {
  const events = [];
  const text = new ReplyText({ channels, inside, stops, emit: (event) => events.push(event) });
  for (const part of parts) {
    if (typeof part === 'number' ? text.mark(part) && false : text.push(part)) break;
  }
  text.end();
  const joined = (type) => events.filter((event) => event.type === type).map((event) => event.text).join('');
  const { stopText, ...said } = text.parts;
  assert.deepEqual({ text: joined('text'), thinking: joined('thinking'), toolCalls: [] }, said);
  return [said.thinking, said.text, ...stopText ? [stopText] : []];
}

test('thinking is told by its tokens', () => {
  assert.deepEqual(replyText([OPEN, '\n', 'I ', 'think\n', '\n', CLOSE, '\n\n', 'Answer']), ['I think', 'Answer']);
  assert.deepEqual(replyText(['so\n', '\n', CLOSE, '\n', '\n', 'Answer\n'], { inside: THINKING }), ['so', 'Answer\n']);
  assert.deepEqual(replyText(['<think>', 'spelled', '</think>', ' out']), ['', '<think>spelled</think> out']);
  assert.deepEqual(replyText([OPEN, 'never', ' ends ']), ['never ends', '']);
  assert.deepEqual(replyText([OPEN, '\n\n', CLOSE, '\n\n', 'x']), ['', 'x']);
  assert.deepEqual(replyText(['\n\nplain\n\n']), ['', '\n\nplain\n\n']);
  assert.deepEqual(replyText([OPEN, 'a', CLOSE, 'b', OPEN, 'c', CLOSE, 'd']), ['ac', 'bd']);
});

test('stop texts are looked for in the text, not in the thinking', () => {
  assert.deepEqual(replyText([OPEN, 'END', CLOSE, 'a', 'EN', 'D', 'b'], { stops: ['EN!', 'END'] }), ['END', 'a', 'END']);
  assert.deepEqual(replyText(['aEN'], { stops: ['END'] }), ['', 'aEN']);
  assert.deepEqual(replyText(['aEN', OPEN, 't', CLOSE, 'D'], { stops: ['END'] }), ['t', 'aEND']);
});

test('a vocabulary without marks has no thinking', () => {
  assert.deepEqual(replyText(['a', 'b'], { channels: [] }), ['', 'ab']);
});

test('each channel has marks of its own, and only its own ends it; what it says is text, is', () => {
  const events = [];
  let held = '';
  const begin = () => ({ push: (piece) => { held += piece; return ''; }, end: (closed) => `[${held.length}${closed ? '' : '+'}]` });
  const CALL = { open: 3, close: 4, type: 'call', gap: '\n', begin };
  const text = new ReplyText({ channels: [THINKING, CALL], inside: null, stops: ['END'], emit: (event) => events.push(event) });
  const isMark = [];
  for (const part of [OPEN, 'a', CALL.close, 'b', CALL.open, 'c', CLOSE, '\n\nd', '\n', '\n', CALL.open, '\n{END', CLOSE, '}\n', CALL.close, '\n', 'e\n', 5, CALL.open]) {
    if (typeof part === 'number') isMark.push(text.mark(part));
    else text.push(part);
  }
  text.end();
  const joined = (type) => events.filter((event) => event.type === type).map((event) => event.text).join('');
  assert.deepEqual(['thinking', 'text'].map(joined), ['abc', 'd\n[7]\ne[7+]'], 'one line end before a call is none of the text');
  assert.equal(held, '\n{END}\n');
  assert.deepEqual(isMark, [true, true, true, true, true, true, true, false, true]);
});

test('a line end before a call is held back, and shown where none comes', () => {
  const shown = [];
  const call = { open: 3, close: 4, type: 'call', begin: () => ({ push: () => '' }) };
  const text = new ReplyText({ channels: [{ ...call, gap: '\n' }], inside: null, stops: [], emit: (event) => shown.push(event.text) });
  for (const piece of ['a\n', 'b', '\n', '\n']) text.push(piece);
  assert.deepEqual(shown, ['a', '\nb', '\n']);
  text.end();
  assert.deepEqual(shown, ['a', '\nb', '\n', '\n']);
  for (const [gap, lines, left] of [['\n', '\n\n', '\n'], ['\n\n', '\n\n', ''], ['\n\n', '\n', ''], ['\n\n', '\n\n\n', '\n'], ['\n\n', ' \n', ' ']]) {
    const one = new ReplyText({ channels: [{ ...call, gap }], inside: null, stops: [], emit: () => {} });
    for (const letter of `a${lines}`) one.push(letter);
    one.mark(3);
    assert.equal(one.parts.text, `a${left}`);
  }
});

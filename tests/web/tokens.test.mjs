// SPDX-License-Identifier: MIT
// How the text of a reply is split: formulas, footnotes, the three tags, line breaks, bold text beside the punctuation of
// Chinese and Japanese, headings, a call that was cut off. And that no text takes long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks } from '../../web/message/tokens.js';

/** Tokens as lists: type, then content. */
const shape = (tokens) => tokens.filter(({ type }) => type !== 'space').map((token) => {
  const { type, items, tokens: inner, tex, text, raw } = token;
  if (items) return [type, ...items.map((item) => shape(item.tokens))];
  return [type, ...(inner ? shape(inner) : [tex ?? text ?? raw])];
});

const inline = (text) => shape(blocks(text))[0].slice(1);

test('formulas are found before emphasis and escapes are', () => {
  for (const [text, ...wanted] of [
    ['\\(E = mc^2\\)', ['formula', 'E = mc^2']],
    ['$a_1*b*c_1$', ['formula', 'a_1*b*c_1']],
    ['\\[a_1 * b_1 *\\] $$x$$', ['formula', 'a_1 * b_1 *'], ['text', ' '], ['formula', 'x']],
    ['*a $x*y$ b*', ['em', ['text', 'a '], ['formula', 'x*y'], ['text', ' b']]],
    ['**$x$**', ['strong', ['formula', 'x']]],
    ['[the $x$](https://a.b)', ['link', ['text', 'the '], ['formula', 'x']]],
    ['$\\$5$', ['formula', '\\$5']],
  ]) assert.deepEqual(inline(text), wanted, text);
  assert.deepEqual(shape(blocks('See\n$$\na\n= b\n- c\n$$\nthere')), [['paragraph', ['text', 'See']], ['display', '\na\n= b\n- c\n'], ['paragraph', ['text', 'there']]]);
  assert.deepEqual(shape(blocks('\\[\nx\n\\].')), [['display', '\nx\n.']], 'the point behind it belongs to it');
  assert.deepEqual(shape(blocks('1. a\n   $$\n   x\n   $$\n2. b')), [['list', [['text', ['text', 'a']], ['display', '\nx\n']], [['text', ['text', 'b']]]]]);
  assert.deepEqual(shape(blocks('> \\[\n> x\n> \\]')), [['blockquote', ['display', '\nx\n']]]);
});

test('money, code, and formulas that do not end are no formulas', () => {
  for (const text of ['$5 and $6', 'from $10-$20', '$ x $', 'a $x', '\\$5 and \\$6$', '`$x$` and `\\(y\\)`', '$a `b$` c', '\\(x', '$$x', '\\\\(x\\\\)']) {
    assert.doesNotMatch(JSON.stringify(shape(blocks(text))), /"(formula|display)"/, text);
  }
  assert.deepEqual(shape(blocks('```\n$$\nx\n$$\n```')), [['code', '$$\nx\n$$']]);
});

test('<br>, <sub> and <sup> are tags, without attributes, and others are text', () => {
  assert.deepEqual(inline('H<sub>2</sub>O<br>x<SUP>*a*</SUP><br/>'), [['text', 'H'], ['sub', ['text', '2']], ['text', 'O'], ['br', '<br>'], ['text', 'x'], ['sup', ['em', ['text', 'a']]], ['br', '<br/>']]);
  for (const text of ['<b>x</b>', '<br onclick=x>', '<sub class="x">y</sub>', '<sub>', '<script>x</script>', '<svg onload=x>', '<sup>x</sub>']) assert.deepEqual(inline(text), [['text', text]], text);
});

test('footnotes, tasks, and lines that stay lines', () => {
  assert.deepEqual(shape(blocks('a[^1]\n[^1]: b *c*\n   d\n[^2]: e')), [['paragraph', ['text', 'a'], ['note', '1']], ['footnote', ['text', 'b '], ['em', ['text', 'c']], ['br', '\n   '], ['text', 'd']], ['footnote', ['text', 'e']]]);
  assert.deepEqual(inline('[^a-z] and [1]'), [['text', '[^a-z] and [1]']]);
  assert.deepEqual(shape(blocks('- [x] a'))[0][1][0], ['checkbox', '[x] ']);
  assert.deepEqual(inline('a\nb'), [['text', 'a'], ['br', '\n'], ['text', 'b']]);
});

test('bold text beside brackets and punctuation of Chinese and Japanese, and the rules for the rest as before', () => {
  const bold = (text) => [...JSON.stringify(inline(text)).matchAll(/\["strong",\["\w+","(.*?)"\]\]/g)].map(([, words]) => words);
  for (const [text, ...wanted] of [
    ['**「重要」**です', '「重要」'], ['これは**「重要」**です。', '「重要」'], ['**“重要”**的', '“重要”'], ['**重要：**下一步', '重要：'], ['这是**（注）**和**《书》**的', '（注）', '《书》'],
    ['**`code`**です', 'code'], ['**중요(重要)**는', '중요(重要)'], ['**a** b', 'a'], ['a**b**c', 'b'],
  ]) assert.deepEqual(bold(text), wanted, text);
  for (const text of ['a**"b"**c', '2 ** 3 ** 4', '**a **', '** a**']) assert.deepEqual(bold(text), [], text);
});

test('headings begin at level 2 and leave out none, whatever the number of their #', () => {
  const levels = (text) => blocks(text).filter(({ type }) => type === 'heading').map(({ level }) => level);
  assert.deepEqual(levels('# a\n\n### b\n\n###### c\n\n## d\n\n# e'), [2, 3, 4, 3, 2]);
  assert.deepEqual(levels('#### a\n\n## b\n\nc\n---\n\n### d'), [2, 2, 2, 3]);
  const [first] = blocks('## a\n');
  assert.equal(blocks('### b', first.headings)[0].level, 3);
  assert.equal(blocks('> ### q\n')[0].tokens[0].level, 2);
});

test('a call of a tool that is cut off is one block, and words about such calls are text', () => {
  assert.deepEqual(shape(blocks('So.\n<tool_call>\n{"n')), [['paragraph', ['text', 'So.']], ['cut', '<tool_call>\n{"n']]);
  assert.deepEqual(shape(blocks('<tool_call>')), [['cut', '<tool_call>']]);
  for (const text of ['use `<tool_call>` here', 'a <tool_call> tag', '<tool_call>\n{}\n</tool_call>']) assert.doesNotMatch(JSON.stringify(shape(blocks(text))), /"cut"/, text);
});

/** Milliseconds that one window of a text (stream.js) may take. */
const MOST_MS = 1000;

test('no text takes long', () => {
  const SIZE = 8192;
  const pieces = ['$', '$$', '$a', '\\(', '\\[', '$ $', '<sub>', '<sup>a', '<br', '[^1]', '[^1]:\n', '**「', '*「*', '「**」', '重**', '<tool_call>', '<tool_call>\n{', '\n$$\n', '\n\\[\n', '$`', '\\\\(', '> ', '>', '- ', '[', '![', '`', '|', '&amp;', '# ', '\n- [ ] '];
  for (const piece of pieces) for (const separator of ['', ' ', '\n']) {
    const text = (piece + separator).repeat(Math.ceil(SIZE / (piece.length + separator.length))).slice(0, SIZE);
    const start = process.cpuUsage();
    const found = blocks(text);
    const { user } = process.cpuUsage(start);
    assert.ok(user / 1000 < MOST_MS, `${JSON.stringify(piece + separator)}: ${user / 1000} ms`);
    assert.equal(found.map(({ raw }) => raw).join('').length, text.length);
  }
});

// SPDX-License-Identifier: MIT
// Templates that their authors, or whoever writes a message, mean badly: each ends by its count, nothing that nobody can interrupt takes long, and
// nothing but an error of the template's own comes out. QUERN_LONG=1 tries far more of the random ones.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { MOST_AT_ONCE, TemplateError } from '../../../js/template/meter.js';
import { begin } from '../../../js/template/render.js';
import { add } from '../../../js/template/template-rare.js';

add();

const SLICE = 20_000;

/** Of our own thread and its helpers, in milliseconds: other programs do not count. */
function worked() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** A slice has about 20 ms; a slow machine under a debugger has not. */
const MOST_TIME = 1000;

/** Renders it; each slice is held to its count and, generously, to its time. @returns {string} the text, or `!` and what is wrong */
function rendered(template, variables = {}) {
  const json = typeof variables === 'string' ? variables : JSON.stringify(variables);
  try {
    const machine = begin(template, json);
    for (let isDone = false; !isDone;) {
      const [left, before] = [machine.meter.left, worked()];
      isDone = machine.run(SLICE);
      assert.ok(left - machine.meter.left <= SLICE + MOST_AT_ONCE + json.length / 16, `a slice of ${template.slice(0, 200)} has too many steps`);
      assert.ok(worked() - before < MOST_TIME, `a slice of ${template.slice(0, 200)} takes ${worked() - before} ms`);
    }
    return machine.out;
  } catch (error) {
    if (!(error instanceof TemplateError || error instanceof RangeError)) throw error;
    return `!${error.message}`;
  }
}

/** What ends by its count. */
const TOO_MUCH = /^!(?:one of its operations|it) takes too many steps$/;

/** And not by what one operation may take: it is the loop. */
const TOO_OFTEN = /^!it takes too many steps$/;

const loop = (start, body, times = 100_000) => `{% set ns = namespace(a=${start}, b=${start}) %}{% for i in range(${times}) %}${body}{% endfor %}`;
const grown = (start, more, use) => `${loop(start, `{% set ns.a = ${more} %}{% set ns.b = ${more.replaceAll('.a', '.b')} %}`, 100)}{{ ${use} }}`;

test('what grows by itself', () => {
  for (const more of ['[ns.a, ns.a]', '(ns.a, ns.a)', '{"a": ns.a, "b": ns.a}']) {
    for (const use of ['ns.a', 'ns.a|tojson', 'ns.a == ns.b', 'ns.a in [ns.b]', '[ns.a, ns.b]|sort', '[ns.a].index(ns.b)', '{}.get(ns.a)', '{ns.a: 1}',
      '{ns.a: 1}[ns.b]', '[ns.a, ns.b]|unique|list', 'ns.a|string|length', '"%r" % [ns.a]', '"{}".format(ns.a)', 'ns.a|urlencode', '[ns.a]|groupby(0)',
      'ns.a in {}', 'dict([(ns.a, 1)])', '{}.fromkeys([ns.a])', '{}[ns.a]']) rendered(grown('"x"', more, use));
  }
  assert.match(rendered(grown('[1]', '[ns.a, ns.a]', '(ns.a == ns.b)')), /^!/);
  for (const [start, more] of [['"x"', 'ns.a ~ ns.a'], ['"x"', 'ns.a + ns.a'], ['"x"', 'ns.a * 2'], ['[1]', 'ns.a + ns.a'], ['[1]', 'ns.a * 2'],
    ['"x"', 'ns.a.replace("x", "xx")'], ['"x"', 'ns.a.join([ns.a, ns.a, ns.a])'], ['"x"', '"%s%s" % (ns.a, ns.a)'], ['"x"', '"{0}{0}".format(ns.a)'],
    ['"x"', '[ns.a, ns.a]|join']]) assert.match(rendered(grown(start, more, '1')), TOO_MUCH, more);
  for (const cycle of ['ns', '[ns, ns]', '{"a": ns}', '(ns, ns)']) {
    const set = `{% set ns = namespace() %}{% set ns.a = ${cycle} %}`;
    for (const use of ['ns', 'ns.a', '[ns]|tojson', 'ns.a == [ns, [ns]]', '{ns: ns}', '[ns.a, ns.a]|sort', 'ns.a|string']) rendered(`${set}{{ ${use} }}`);
  }
});

test('whole numbers: a large product counts, and never less than nothing', () => {
  for (const use of ['ns.a * ns.a', 'ns.a // 7', 'ns.a % 7', '(ns.a * ns.a) % (ns.a - 1)', 'ns.a / (ns.a - 1)', 'ns.a.bit_length()', '"%x" % ns.a',
    '"{:_b}".format(ns.a)|length', '3 ** 60000', '1.5|round(300)', '"%.5000f" % 1.1e300', '("f" * 4900)|int(base=16)', '2 ** (ns.a * 0 + 65000)']) {
    assert.match(rendered(loop('2 ** 50000', `{% set x = ${use} %}`)), TOO_MUCH, use);
  }
  for (const use of ['2 ** (2 ** 70)', '(2 ** 131000) * (2 ** 131000)', '(2 ** 20000)|string', '"%d" % (2 ** 20000)', '"{:,}".format(2 ** 20000)',
    '"x" * 2 ** 70', '[1] * 2 ** 70', 'range(2 ** 70)', '"a".center(2 ** 70)', '"a"|indent(2 ** 70)', '"{:0900000,}".format(1)', '"%.9000000d" % 1',
    '{2 ** 5000: 1}', '{(2 ** 5000, 1): 1}', '{}|tojson(indent=2 ** 70)', '[1]|batch(2 ** 70, 1)|list']) assert.match(rendered(`{{ ${use} }}`), /^!/, use);
  assert.equal(rendered('{{ [(-1) ** 7, (-1) ** 8, 0 ** 0, 0 ** 9, 1 ** 2 ** 99] }} {{ "{:,}".format(1234567) }}'), '[-1, 1, 1, 0, 1] 1,234,567');
});

test('whole numbers that end alike are told apart as keys', () => {
  assert.match(rendered('{{ {}.fromkeys(range(0, 2 ** 78, 2 ** 64)).keys()|length }}'), /^16384$/);
  assert.equal(rendered('{{ {2 ** 64: 1, 2.0 ** 64: 2, 1: 3, 1.0: 4, true: 5} }}'), '{18446744073709551616: 2, 1: 5}');
});

const TEXTS = { x: 'x'.repeat(1_000_000), pairs: `é${'😀'.repeat(300_000)}`, words: 'a B '.repeat(250_000), quotes: '"\n<'.repeat(300_000), spaces: ' '.repeat(1e6) };

/** What is done with a long text. */
const USES = [...['title', 'capitalize', 'upper', 'list', 'tojson', 'tojson(true)', 'urlencode', 'escape', 'wordcount', 'striptags', 'reverse', 'indent', 'int',
  'float', 'truncate', 'batch(2)|list', 'slice(3)|list', 'unique|list', 'sort', 'map("upper")|list', 'select("eq", "x")|list', 'join', 'first', 'max', 'trim',
  'groupby(0)', 'replace("x", "yy")', 'replace("", "y")', 'filesizeformat', 'center(2000000)'].map((name) => `v|${name}`),
...['split()', 'split("x")', 'rsplit("x", 3)', 'rsplit()', 'splitlines()', 'swapcase()', 'casefold()', 'isalpha()', 'islower()', 'istitle()', 'isidentifier()',
  'isprintable()', 'expandtabs()', 'count("x")', 'count("")', 'partition("y")', 'strip("x")', 'strip()', 'title()', 'zfill(2000000)', 'find("y")',
  'replace("x", "", 3)', 'join(v)'].map((name) => `v.${name}`),
'v[::2]', 'v[::-1]', 'v[7]', 'v[1:] ~ v', '[v]', '"%10s|%r" % (v, v)', '"{!a}".format(v)', 'v in (v ~ "x")', 'v < v ~ "x"', '{(v, v): 1}', 'v * 3'];

test('long texts: one operation', () => {
  for (const v of Object.values(TEXTS)) for (const use of USES) rendered(`{% set y = ${use} %}`, { v });
});

test('what most templates do with texts is not refused for their length', () => {
  const v = `<think>${TEXTS.x}</think>${'a line\n'.repeat(30_000)}`;
  const done = rendered(`{{ v|trim|length }} {{ v.split('</think>')[-1].lstrip('\\n')|length }} {{ v.startswith('<think>') }} {{ '</think>' in v }}
    {{ ('<|im_start|>' + v + '\\n')|length }} {{ v.replace('<think>', '')|length }} {{ v|tojson|length }} {{ v[3:]|length }} {{ (v ~ 'x')|length }}`, { v });
  assert.ok(!done.startsWith('!'), done);
});

test('long texts: again and again', () => {
  assert.equal(rendered('{% for i in range(100000) %}{% set y = i %}{% endfor %}'), '');
  for (const use of ['v|length', 'v[7]', 'v[-1]', 'v == w', 'v.startswith(w)', '("x" * 500 ~ "y") in v', 'v.find("x" * 500 ~ "y")', 'v.endswith((w, w))', 'v ~ w',
    'v|trim', 'v.count("y")', '{v ~ i: 1}', 'v is lower', 'v.isdigit()', '[1]|map(attribute=v)|list', 'v|int', 'v.split("y")', 'v > w']) {
    assert.match(rendered(`{% for i in range(100000) %}{% set y = ${use} %}{% endfor %}`, { v: TEXTS.x.slice(1), w: `${TEXTS.x.slice(2)}y` }), TOO_MUCH, use);
  }
  for (const format of ['("}}" * 50000).format()', '("{{" * 50000).format()', '("{}" * 9000).format(*range(9000))', '("%%" * 50000) % ()',
    '("%s" * 9000) % (("x",) * 9000)', '("{0" ~ ".a" * 9000 ~ "}").format({})', '("%(" * 9000) % {}', '("{" * 9001).format()', '("9" * 4300)|int',
    '(" " * 4000 ~ "9" ~ " " * 900 ~ "9")|float', '("1_" * 2000)|int', '("٣" * 4300)|int', 'strftime_now("%c" * 9000)']) rendered(`{% set y = ${format} %}`);
  assert.match(rendered('{{ v.startswith((w,) * 30000) }}', { v: TEXTS.x, w: `${TEXTS.x.slice(1)}y` }), TOO_MUCH);
});

test('long lists and dicts', () => {
  const d = Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`k${i}`, i]));
  for (const use of ['d == e', 'd.items() == e.items()', '5 in d.values()', 'd|dictsort', 'd|tojson', 'd|string', 'd|items|list', 'dict(d)', 'dict(**d)', 'f(**d)',
    'f(*d)', 'd|first', 'd|urlencode', 'd|xmlattr', '{}.fromkeys(d)', 'd.keys() == e.keys()', 'l|sum(start=[])', '[l] == [m]', 'l|join', 'l * 2', 'l[::-1]',
    'l|sort', 'l|max', 'l|unique|list', 'l.index(3)', 'l.count(3)', 'l|map("string")|list', 'l|select|list', '(l, l)|map("length")|list', '3 in l']) {
    const once = `{% macro f() %}{{ kwargs|length }}{{ varargs|length }}{% endmacro %}{% set y = ${use} %}`;
    rendered(once, { d, e: d, l: TEXTS.x.slice(0, 36_000).split(''), m: TEXTS.x.slice(0, 36_000).split('') });
    rendered(`{% for i in range(3000) %}${once}{% endfor %}`, { d: { a: 1 }, e: { a: 1 }, l: [1, 2], m: [2] });
  }
});

test('memory: what is kept has been counted', () => {
  for (const more of ['[0] * 30000', '"é" * 60000 ~ i', 'range(100000)|list', '{1: {2: {}}}', '("x," * 9000).split(",")', '("x" * 60000)|list', 'w ~ i|string', 'w|upper']) {
    const before = process.memoryUsage().rss;
    assert.match(rendered(`{% set w = "é" * 60000 %}${loop('[]', `{% set ns.a = [ns.a, ${more}] %}{% set y = ns.a[1]|length %}`)}`), TOO_OFTEN);
    assert.ok(process.memoryUsage().rss - before < 500 * 2 ** 20, `${more} takes ${(process.memoryUsage().rss - before) >> 20} MiB`);
  }
});

const times = (text, n, before = '', after = '') => before + text.repeat(n) + after;

test('templates as long as they may be are refused or read soon', () => {
  const room = 200_000;
  for (const [text, before = '', after = ''] of [['{'], ['{{'], ['{%'], ['{#'], ['{##}'], ['x'], [' '], ['\r\n'], [' {%-'], ['{{a}}'], ['{%if a%}'], ['{%if a%}{%endif%}'],
    ['a+', '{{', 'a}}'], ['not ', '{{', 'a}}'], ['-', '{{', 'a}}'], ['(', '{{', 'a}}'], ['[', '{{', 'a}}'], ['"a"', '{{', '}}'], ['\\n', '{{"', '"}}'], ['"', '{{'],
    ['.a', '{{a', '}}'], ['[1]', '{{a', '}}'], ['()', '{{a', '}}'], ['|e', '{{a', '}}'], [' is none', '{{a', '}}'], [' if a', '{{a', '}}'],
    ['a if a else ', '{{', 'a}}'], ['a<', '{{', 'a}}'], ['a,', '{{', '}}'], ['a=1,', '{{a(', ')}}'], ['1', '{{', '}}'], ['1_', '{{', '1}}'], ['1_', '{{1.', 'e}}'],
    ['f', '{{0x', '}}'], ['a', '{{', '}}'], [' ', '{% raw', 'x'], ['{%            '], ['{%raw%}'], ['{%endraw ', '{%raw%}'], ['-', '{#'],
    ['{%macro a()%}{%endmacro%}'], [',a', '{%macro a(b', ')%}'], ['a,', '{%set ', '=1%}'], ['(', '{%set ', '=1%}'], ['{%for a in b if c%}{%endfor%}'],
    ['{%break%}', '{%for a in b%}', '{%endfor%}'], ['{%elif a%}', '{%if a%}', '{%endif%}'], ['{%call a()%}{%endcall%}'], ['{%include "a"%}'], ['😀{{a}}']]) {
    const template = times(text, Math.floor(room / text.length), before, after);
    const from = worked();
    rendered(template);
    assert.ok(worked() - from < 3000, `${template.slice(0, 30)} takes ${worked() - from} ms`);
  }
  for (const text of [`{{a${' if a'.repeat(30_000)}}}`, `{%macro m(${Array.from({ length: 20_000 }, (_, i) => `a${i}`)})%}{%endmacro%}`]) {
    const from = worked();
    rendered(text);
    assert.ok(worked() - from < 3000, `${text.slice(0, 30)} takes ${worked() - from} ms`);
  }
  for (const [open, close, middle = 'a'] of [['(', ')'], ['[', ']'], ['{%for a in b if c recursive%}', '{%endfor%}'], ['{%macro a(b=1)%}', '{%endmacro%}'],
    ['{%set a|e%}', '{%endset%}'], ['{%filter e%}', '{%endfilter%}'], ['{%call(x=1) a()%}', '{%endcall%}'], ['{%if a%}', '{%endif%}'], ['{%block a%}', '{%endblock%}']]) {
    for (const deep of [50, 150, 5000]) {
      const text = open.repeat(deep) + middle + close.repeat(deep);
      rendered(open.length === 1 ? `{{ ${text} }}` : text);
    }
  }
});

test('calls of macros and loops inside each other end', () => {
  assert.match(rendered('{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}'), /nested too deep/);
  assert.match(rendered('{% macro m() %}{{ caller }}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}'), /nested too deep/);
  assert.match(rendered('{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}'), /nested too deep/);
  assert.match(rendered('{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}'), TOO_MUCH);
  assert.match(rendered(`${'{% for a in r %}'.repeat(9)}{% break %}${'{% endfor %}'.repeat(9)}`, { r: TEXTS.x.slice(0, 300) }), TOO_MUCH);
});

test('variables: depth, size, numbers, keys', () => {
  for (const json of [times('[', 100_000), times('{"a":', 100_000), times('[', 90, '', `1${times(']', 90)}`), times('1', 100_000), `1.${times('1', 100_000)}`,
    `1e${times('9', 9999)}`, times('-', 9999), times(' ', 100_000, '', '1'), times('a', 9999), `"${times('\\', 99_999)}`, '', '"', '{"a"', '{"a":1,}', '[1,]', '{1:2}', 'nul', '01',
    '{"a":1}x', '"\t"', '"\\x"', '"\\ud800"', `[${times('{},', 300_000)}1]`]) rendered('{{ 1 }}', `{"v":${json}}`);
  assert.equal(rendered('{{ a }} {{ __proto__ }} {{ v }}', '{"a":1,"a":2,"__proto__":{"x":1},"v":{"__proto__":3,"__proto__":4}}'), "2 {'x': 1} {'__proto__': 4}");
});

const NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'prototype', '__defineGetter__', 'length', 'then', 'get', 'left', 'items'];

test('names of JavaScript are names like others', () => {
  for (const name of NAMES) {
    for (const of of ['""', '1', '1.5', '[]', '()', '{}', 'none', 'true', 'range(3)', 'namespace()', 'dict', 'ns', 'm', 'loop', 'cycler(1)', 'joiner()', '"".strip', '[]|map("e")',
      '{}.items()', '""|safe']) {
      for (const use of [`.${name}`, `['${name}']`, `|attr('${name}')`, `.${name}.${name}`, `.${name}()`, `.${name}(${name}=1)`, `|map(attribute='${name}')|list`]) {
        const out = rendered(`{% macro m() %}{% endmacro %}{% set ns = namespace() %}{% for i in [1] %}{{ (${of})${use} }}{% endfor %}`);
        assert.doesNotMatch(out, /native code|\[object|=>|class |function ?\(/, `${of}${use}`);
      }
    }
    if (name !== 'items' && name !== 'length') assert.match(rendered(`{{ 1|${name} }}`), /^!/);
    assert.match(rendered(`{{ 1 is ${name} }}`), /^!/);
    assert.match(rendered(`{{ range(${name}=1) }}{{ ''.split(${name}=1) }}`), /^!/);
    assert.equal(rendered(`{{ ${name} is defined }}{% set ${name} = 1 %}{{ ${name} }}{{ {'${name}': 2}['${name}'] }}`), 'False12');
    assert.equal(rendered(`{% macro m(${name}) %}{{ ${name} }}{% endmacro %}{{ m(3) }}{{ m(${name}=4) }}{{ '{${name}}'.format(${name}=5) }}`), '345');
    assert.match(rendered(`{{ [1]|map('${name}')|list }}`), name === 'length' ? /^!/ : name === 'items' ? /^!/ : /^!there is no/);
    assert.equal(rendered(`{{ {'a': 1}.${name} is defined }}`), name === 'get' || name === 'items' ? 'True' : 'False', name);
  }
  assert.equal({}.x, undefined);
});

test('nothing of a rendering is left in the next one', () => {
  const template = `{{ x is defined }}{{ g|list }}{% set x = 1 %}{% set g = [1, 2]|map('string') %}{{ g|first }}
    {%- macro m(a=[]) %}{{ a }}{% endmacro %}{{ m() }}{{ cycler(1, 2).next() }}{{ joiner()() }}`;
  const first = rendered(template);
  assert.equal(first, "False[]1[]1");
  for (const other of ['{% set range = 1 %}{% set x = 2 %}', '{% macro raise_exception() %}{% endmacro %}', template]) rendered(other, { dict: 1, range: 2 });
  assert.equal(rendered(template), first);
  assert.equal(rendered('{{ range(2)|list }}{{ dict(a=1) }}'), "[0, 1]{'a': 1}");
});

// --- random templates ---

/** Numbers that are the same each time. */
function randomOf(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const TOKENS = ('{{ }} {% %} {%- -%} {# #} ( ) [ ] { } . , : | ~ + - * ** / // % == != < > <= >= = if else elif endif for endfor in is not and or set endset macro '
  + 'endmacro call endcall filter endfilter block endblock break continue recursive raw endraw generation endgeneration namespace ns ns.a loop loop.index loop.cycle messages '
  + 'message role content tools x y z true none 0 1 -1 7 1.5 1e400 2**64 "a" "%s" "{}" \'\' [] () {} range(9) dict() cycler(1) joiner() strftime_now raise_exception '
  + 'length upper tojson map select selectattr sort groupby join replace split strip items keys get index count format int float round trim list string first last '
  + 'constructor __proto__ \\n 😀 é').split(' ').concat([' ', '\n', '\ud800']);

const folder = new URL('../../fixtures/jinja/', import.meta.url);
const SOURCES = [
  ...readdirSync(new URL('templates/', folder)).map((name) => readFileSync(new URL(`templates/${name}`, folder), 'utf8')),
  ...readFileSync(new URL('snippets.jsonl', folder), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line).t),
];
const VARIABLES = JSON.stringify({
  messages: [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'Hi 😀' }, { role: 'assistant', content: '<think>x</think>y', tool_calls: [
    { function: { name: 'f', arguments: { a: 1.5, b: [null, true] } } }] }, { role: 'tool', content: '1' }],
  tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object', properties: { a: { type: 'number' } } } } }],
  add_generation_prompt: true, bos_token: '<s>', eos_token: '</s>', x: [1, 2, 3], y: { a: 1 }, z: 'text', message: { role: 'user', content: 'z' },
});

function mutated(random, source) {
  let text = source;
  for (let n = 1 + random(4); n; n--) {
    const [at, size] = [random(text.length + 1), random(12)];
    const put = [() => '', () => TOKENS[random(TOKENS.length)], () => text.slice(random(text.length), random(text.length)).slice(0, 60)][random(3)]();
    text = text.slice(0, at) + put + text.slice(at + (random(2) && size));
  }
  return text;
}

function soup(random) {
  const words = Array.from({ length: 1 + random(25) }, () => TOKENS[random(TOKENS.length)]);
  return random(2) ? `{{ ${words.join(' ')} }}` : words.join(random(2) ? ' ' : '');
}

test('random templates give a text or an error of their own', () => {
  const many = process.env.QUERN_LONG ? 200_000 : 4_000;
  const random = randomOf(7);
  let texts = 0;
  for (let i = 0; i < many; i++) {
    const template = i % 2 ? mutated(random, SOURCES[random(i % 8 === 1 ? 60 : SOURCES.length)]) : soup(random);
    try {
      texts += rendered(template, VARIABLES).startsWith('!') ? 0 : 1;
    } catch (error) {
      throw new Error(`template ${i}: ${JSON.stringify(template.slice(0, 2000))}`, { cause: error });
    }
  }
  assert.ok(texts > many / 20, `${texts} of ${many} were rendered`);
});

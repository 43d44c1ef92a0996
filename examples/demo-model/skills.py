"""What visitors of the chat page try first: greetings, small sums, the page's tools, JSON, and system prompts.

The words of the tools are those of web/tools/own-tools.js, in the form of Qwen3's chat template.
A turn is (user, thought, reply), or (user, thought, reply, call, result, thought after the result).
"""
import json

from wording import an, ask, cap, cased, mistyped, x

# ---------------------------------------------------------------- greetings
SPELLINGS = {
    'hello': 'hello helo hallo hallo hallo hullo hellow helloo helllo hellooo ello hellou'.split(),
    'hi': 'hi hii hiii hiya hy hai hihi'.split(),
    'hey': 'hey heyy heyyy heya hay ey'.split(),
    'other': ['greetings', 'howdy', 'yo', 'sup', "what's up", 'whats up', 'wassup', 'good day', "g'day",
              'hello world', 'hello again', 'hi again', 'ahoy'],
}
AFTER = ['there', 'there', 'quern', 'friend', 'bot', 'everyone', 'computer', 'model', 'you', 'all', 'buddy']
MARKS = ['', '', '', '', '!', '!', '.', '!!', '?', ' :)', ' 👋', '...', ' !', ',']
PARTS = ['morning', 'morning', 'evening', 'afternoon']
SHORT = ['Ask me for a story, a small sum or a capital city.', 'What can I do for you?', 'How can I help you?',
         'I am a toy model, so please ask me something small.']


def greeting(r):
    k = r.random()
    reply = x('{Hello!|Hello!|Hi there!|Hello! 👋}', r)
    if k < .12:
        part = r.choice(PARTS)
        s = x('{good |good |good |good |gud |good|}' + part, r) + x('{||||| to you| friend| quern| all}', r)
        reply = f'Good {part}!'
    elif k < .22: s = r.choice(SPELLINGS['other'])
    else:
        kind = r.choice(['hello', 'hi', 'hey'])
        s = kind if r.random() < .6 else r.choice(SPELLINGS[kind])
        if r.random() < .06 and len(s) > 2: s = mistyped(s, r)
        if r.random() < .3: s += ' ' + r.choice(AFTER)
        elif r.random() < .04: s += ' ' + r.choice(['hello', 'hi', kind])
    return cased(s, r, .4, .35, .15) + r.choice(MARKS), 'The user greets me.', f'{reply} {r.choice(SHORT)}'


# ---------------------------------------------------------------- sums
NUMBERS = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen '
           'seventeen eighteen nineteen twenty').split()


SIGNS = {
    '+': ['+', '+', 'plus', 'and'],
    '-': ['-', '-', 'minus'],
    '×': ['*', '*', 'x', 'times', '×', 'multiplied by'],
}
ASKS = ['what is', 'what is', "what's", 'whats', 'how much is', 'calculate', 'compute', 'tell me', 'work out',
        'can you tell me', 'solve', 'what does', 'and']


def _question(r, a, sign, b):
    s = r.choice(SIGNS[sign])
    if s == 'and': return ask(r, f'{{add|can you add|what is the sum of|the sum of}} {a} and {b}{{?|.}}')
    if r.random() < .08:
        if sign == '+':
            return ask(r, f'add {b} to {a}.', f'{a} and {b} {{together|makes what}}?', f'how much is {a} and {b}?')
        if sign == '-':
            return ask(r, f'subtract {b} from {a}.', f'take {b} {{away |}}from {a}.', f'{a} take away {b}?')
        return ask(r, f'multiply {a} by {b}.', f'multiply {a} and {b}.', f'the product of {a} and {b}?')
    gap = '' if s in ('+', '-', '*', 'x', '×') and r.random() < .3 else ' '
    if max(a, b) <= 20 and r.random() < .15:
        a, b, gap, s = NUMBERS[a], NUMBERS[b], ' ', {'+': 'plus', '-': 'minus', '×': 'times'}[sign]
    bare = f'{a}{gap}{s}{gap}{b}'
    if r.random() < .3: return bare + r.choice(['', '', '?', ' ?', ' =', '=', ' = ?', '=?', '.'])
    verb = r.choice(ASKS)
    return ask(r, f'{verb} {bare}{" make" if verb == "what does" else ""}{{?|?|}}')


def add(r):
    k = r.random()
    if k < .7:
        total = int(100 * r.random() ** .6 + .5)
        a = r.randint(0, total)
        b = total - a
    elif k < .9: a, b = r.randint(0, 100), r.randint(0, 100)
    else: a, b = r.randint(0, 12), r.randint(0, 12)
    ones, tens = a % 10 + b % 10, a // 10 * 10 + b // 10 * 10
    th = f'{a} + {b} is {a + b}.' if a < 10 or b < 10 else f'Tens: {tens}. Ones: {ones}. {tens} + {ones} = {a + b}.'
    return _question(r, a, '+', b), th, f'{a} + {b} = {a + b}.'


def sub(r):
    a, b = (r.randint(0, 100), r.randint(0, 100)) if r.random() < .85 else (r.randint(0, 20), r.randint(0, 20))
    if a < b and r.random() < .9: a, b = b, a
    th = f'{a} - {b} is {a - b}.'
    if a >= b >= 10 and b % 10:
        tens = b // 10 * 10
        th = f'{a} - {tens} = {a - tens}. {a - tens} - {b % 10} = {a - b}.'
    return _question(r, a, '-', b), th, f'{a} - {b} = {a - b}.'


def mul(r):
    a, b = r.randint(0, 10), r.randint(0, 10)
    return _question(r, a, '×', b), f'{a} times {b} is {a * b}.', f'{a} × {b} = {a * b}.'


def too_big(r):
    """Sums that the model does not know, and says so."""
    k = r.random()
    if k < .45:
        a, b = r.randint(11, r.choice([20, 99, 99, 999])), r.randint(2, r.choice([9, 12, 99, 999]))
        if r.random() < .3: a, b = b, a
        q = _question(r, a, '×', b)
    elif k < .7:
        a, b = r.randint(101, r.choice([200, 999, 9999, 99999])), r.randint(1, r.choice([99, 999, 9999]))
        if r.random() < .3: a, b = b, a
        q = _question(r, a, r.choice('+-'), b)
    elif k < .8:
        a, b, c = (r.randint(1, 60) for _ in range(3))
        s, t = r.choice('+-*'), r.choice('+-*')
        q = ask(r, f'{{what is|calculate|what\'s|}} {a} {s} {b} {t} {c}?'.strip())
    else:
        a, b = r.randint(2, 999), r.randint(2, 20)
        of = f'the square root of|the square of|half of|a third of|the logarithm of|{b} percent of'
        q = ask(r, f'{{what is|what\'s|calculate|}} {a} {{/|divided by|:}} {b}?'.strip(),
                f'{{what is|calculate}} {{{of}}} {a}?',
                f'{{what is|calculate}} {a} {{to the power of|^|modulo}} {b}?',
                f'{{what is|calculate}} {a}.{r.randint(1, 9)} {{+|-|*}} {b}.{r.randint(1, 9)}?')
    reply = ('{I do not know that one|That is too hard for me}: I only know sums up to 100 and products up to 10 × 10. '
             'For more, load Qwen3-0.6B{ or turn on the tools in the settings|}.')
    return q, 'I do not know this one.', x(reply, r)


# ---------------------------------------------------------------- the page's tools
def _prompt(*tools):
    """The system prompt that the chat template makes of tools."""
    lines = '\n'.join(json.dumps({'type': 'function', 'function': tool}) for tool in tools)
    return f'''# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{lines}
</tools>

For each function call, return a json object with function name and arguments \
within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>'''


def _object(properties, **more): return {'type': 'object', 'properties': properties, **more}


EXPRESSION = {'type': 'string', 'description': 'Numbers with + - * / % ^ and parentheses',
              'minLength': 1, 'maxLength': 200}
TOOLS = _prompt(
    {'name': 'now', 'description': 'The date and the time at the place of the user',
     'parameters': _object({}, required=[], additionalProperties=False)},
    {'name': 'calculate', 'description': 'The value of an arithmetic expression',
     'parameters': _object({'expression': EXPRESSION}, required=['expression'], additionalProperties=False)})
EXAMPLE = _prompt(
    {'name': 'now', 'description': 'The date and the time', 'parameters': _object({})},
    {'name': 'add', 'description': 'The sum of two numbers',
     'parameters': _object({'a': {'type': 'integer'}, 'b': {'type': 'integer'}}, required=['a', 'b'])})
DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()
MONTHS = 'January February March April May June July August September October November December'.split()
YEARS = [2026, 2026, 2026, 2027, 2027, 2028]
ZONES = 'UTC GMT BST CET CEST GMT+1 GMT+2 GMT-5 GMT-4 GMT-8 GMT+8 GMT+9 GMT+5:30 EST PDT'.split()
NOW = '{"name": "now", "arguments": {}}'


def _moment(r):
    """A result of the tool `now`, and what it says."""
    day, month = r.choice(DAYS), r.choice(MONTHS)
    date, year = r.randint(1, 31), r.choice([*YEARS, r.randint(2024, 2039)])
    hour, minute = r.randint(0, 23), r.randint(0, 59)
    clock = f'{hour:02}:{minute:02}'
    full = f'{day}{r.choice([",", ""])} {date} {month} {year}'
    return f'{full} at {clock}:{r.randint(0, 59):02} {r.choice(ZONES)}', day, f'{date} {month} {year}', clock, month, year


TIME = ('{what time is it|what is the time|what\'s the time|tell me the time|how late is it|do you know the time|'
        'can you tell me the time|what time do we have}{?| now?| right now?}')
DAY = '{what day is it|which day is it|what weekday is it|what day is today|which day of the week is it}{?| today?}'
DATE = ('{what is the date|what\'s the date|what date is it|what is today\'s date|tell me the date|which date is it}'
        '{?| today?}')
BOTH = '{what is the date and the time|what day and time is it|what are the date and time}{?| now?}'


def clock_turn(r):
    text, day, date, clock, month, year = _moment(r)
    k = r.random()
    if k < .4: q, a = [TIME, '{time|the time|clock|now}{?|}'], f'It is {clock}.'
    elif k < .6: q, a = [DAY], f'Today is {day}.'
    elif k < .85: q, a = [DATE, '{date|the date|today}{?|}'], f'Today is {day}, {date}.'
    elif k < .9: q, a = ['{what year is it|which year is it|what year do we have}{?| now?}'], f'It is the year {year}.'
    elif k < .95: q, a = ['{what month is it|which month is it}{?| now?}'], f'It is {month}.'
    else: q, a = [BOTH], f'It is {clock} on {day}, {date}.'
    return ask(r, *q), 'I need the clock.', a, NOW, text, 'The clock has told me.'


def _number(r):
    k = r.random()
    if k < .5: return str(r.randint(0, 99))
    if k < .85: return str(r.randint(0, 10 ** r.randint(2, 5)))
    return f'{r.randint(0, 999)}.{r.randint(0, 99)}'


def _result(r):
    k = r.random()
    if k < .7: return str(r.randint(0, 10 ** r.randint(1, 7)))
    if k < .85: return f'{r.randint(0, 9999)}.{"".join(r.choice("0123456789") for _ in range(r.randint(1, 12)))}'
    return f'-{r.randint(1, 9999)}'


def _value(expression, r):
    """The value as the page's calculator says it; instead of a long one another number, which the model copies."""
    base, _, power = expression.partition('^')
    try:
        value = int(base) ** int(power) if power else eval(expression, {'__builtins__': {}})
        text = repr(float(f'{value:.15g}')).removesuffix('.0')
        return text if 'e' not in text and len(text) < 18 else _result(r)
    except (ZeroDivisionError, OverflowError): return _result(r)


PAIRS = [('+', '{+|plus}'), ('-', '{-|minus}'), ('*', '{*|*|times|x|multiplied by}'),
         ('*', '{*|*|times|x|multiplied by}'), ('/', '{/|divided by}'), ('%', '{%|modulo}')]


def sum_turn(r):
    """A question with an expression that the calculator gets."""
    a, b, c = _number(r), _number(r), _number(r)
    k = r.random()
    if k < .4:
        s, words = r.choice(PAIRS)
        e, q = f'{a} {s} {b}', f'{a} {words} {b}{{?|?|}}'
    elif k < .62:
        s = r.choice('+-**/')
        e, q = f'{a} {s} {b}', r.choice([f'{a}{s}{b}', f'{a} {s} {b}']) + '{?| =|}'
    elif k < .74:
        s, t = r.choice('+-*'), r.choice('+-*/')
        e = f'{a} {s} {b} {t} {c}'
        q = e + '{?|}'
    elif k < .86:
        s, t = r.choice('+-'), r.choice('*/')
        e = f'({a} {s} {b}) {t} {c}' if r.random() < .7 else f'{c} {t} ({a} {s} {b})'
        q = e + '{?|}'
    elif k < .92:
        a, b = r.randint(2, 20), r.randint(2, 9)
        e, q = f'{a} ^ {b}', f'{a} {{^|to the power of}} {b}{{?|}}'
    elif k < .96:
        a = a.split('.')[0]
        e, q = f'{a} ^ 2', f'{a} squared{{?|}}'
    else:
        q, e = r.choice([(f'add {a} and {b}.', f'{a} + {b}'), (f'multiply {a} by {b}.', f'{a} * {b}'),
                         (f'subtract {a} from {b}.', f'{b} - {a}'), (f'divide {a} by {b}.', f'{a} / {b}'),
                         (f'half of {a}', f'{a} / 2')])
    if k < .96: q = '{what is|what is|what\'s|whats|how much is|calculate|compute|work out|tell me|} ' + q
    v = _value(e, r) if r.random() < .7 else _result(r)
    call = json.dumps({'name': 'calculate', 'arguments': {'expression': e}})
    return ask(r, x(q, r).strip()), f'I calculate {e}.', f'{e} = {v}.', call, v, f'The result is {v}.'


def example_turn(r):
    """A question for the tools of examples/node-tools.mjs."""
    if r.random() < .5:
        a, b = r.randint(0, 10 ** r.randint(1, 4)), r.randint(0, 10 ** r.randint(1, 4))
        call = json.dumps({'name': 'add', 'arguments': {'a': a, 'b': b}})
        q, total = _question(r, a, '+', b), a + b
        return q, f'I add {a} and {b}.', f'{a} + {b} = {total}.', call, str(total), f'The result is {total}.'
    q, th, a, call, text, after = clock_turn(r)
    day, date, month, year, _, clock, *_ = text.replace(',', '').split()
    zone = r.choice(['+0000 (Coordinated Universal Time)', '+0100 (Central European Standard Time)',
                     '-0500 (Eastern Standard Time)'])
    return q, th, a, call, f'{day[:3]} {month[:3]} {int(date):02} {year} {clock} GMT{zone}', after


def tool_turns(r, other):
    """A conversation with the page's tools, or those of the example. @param other: makes a turn that needs none"""
    turns = []
    if r.random() < .1:
        return EXAMPLE, [example_turn(r) if r.random() < .8 else other(r) for _ in range(r.randint(2, 5))]
    for _ in range(r.randint(2, 5)):
        k = r.random()
        if k < .28: turns.append(sum_turn(r))
        elif k < .76: turns.append(clock_turn(r))
        elif k < .94: turns.append(other(r))
        else:                                             # a call that was required, although the question needs none
            text, day, date, clock, *_ = _moment(r)
            q, th, _ = greeting(r)
            turns.append((q, th, f'Hello! It is {clock} on {day}.', NOW, text, th))
    return TOOLS, turns


# ---------------------------------------------------------------- JSON
def _record(r, words):
    """The question for a record, and its fields."""
    n, (c, t) = r.choice(words['names']), r.choice(words['capitals'])
    (a, s), (o, p) = r.choice(words['sounds']), r.choice(words['opposites'])
    i, j, k = r.randint(0, 50), r.randint(0, 50), r.random()
    if k < .3: return '{a|give me a|name a|one} city and its country', {'city': t, 'country': cap(c)}
    if k < .42:
        q = f'{{{c} and its capital|the capital of {c}|what is the capital of {c}}}'
        return q, {'country': cap(c), 'capital': t}
    if k < .62:
        age = r.randint(1, 99)
        return (f'{{{n} is {age} years old|{n}, {age} years old|a person: {n}, {age}|{n}, who is {age}}}',
                {'name': n, 'age': age})
    if k < .74:
        q = f'{{{an(a)} and its sound|an animal and its sound: {a}|what does {an(a)} say}}'
        return q, {'animal': a, 'sound': s}
    if k < .84: return f'{{the opposite of {o}|what is the opposite of {o}}}', {'word': o, 'opposite': p}
    if k < .94: return f'{{what is {i} + {j}|{i} + {j}|the sum of {i} and {j}}}', {'a': i, 'b': j, 'sum': i + j}
    return f'{{is {i} even|{i}: is it even}}', {'number': i, 'even': i % 2 == 0}


TYPES = {str: 'string', int: 'integer', bool: 'boolean'}


def in_json(r, words):
    """One answer in JSON, without spaces, as the engine's grammar writes it. @returns (system or None, turn)"""
    q, fields = _record(r, words)
    names, reply = list(fields), json.dumps(fields, ensure_ascii=False, separators=(',', ':'))
    properties = {name: {'type': TYPES[type(value)]} for name, value in fields.items()}
    closed = {'additionalProperties': False} if r.random() < .4 else {}
    schema = _object(properties, required=names, **closed)
    schema = json.dumps(schema, separators=(',', ':') if r.random() < .7 else None)
    th = 'The answer is JSON with ' + ' and '.join(names) + '.'
    k = r.random()
    listed = ', '.join(names[:-1]) + ' and ' + names[-1]
    if k < .45:
        system = x('{Answer as|Answer in|Reply with} JSON by this schema: ', r) + schema
        return system, (ask(r, q + '{?|.|}'), th, reply)
    if k < .65:
        s = ask(r, q + '{?|.}') + ' ' + x('{Answer as JSON by this schema: |As JSON by this schema: }', r) + schema
        return None, (s, th, reply)
    fields = f'{{with {listed}|with the fields {listed}|(fields: {", ".join(names)})}}'
    s = ask(r, q + ' {as JSON|in JSON|, as JSON} ' + fields + '{.|}',
            f'{{answer|reply}} in JSON with {listed}: ' + q + '{?|.|}')
    return None, (s.replace(' ,', ','), th, reply)


# ---------------------------------------------------------------- system prompts
JOBS = ['helper', 'assistant', 'teacher', 'robot', 'friend', 'guide', 'baker', 'miller', 'chat bot']
KINDS = ['', '', 'friendly ', 'kind ', 'helpful ', 'wise ', 'small ']
ENDINGS = ['Over.', 'Over and out.', 'Meow!', '🌙', 'The end.', 'Amen.', 'Thank you.', '⭐', 'Good luck!', 'Woof!',
           'OK?']
WHO = ['who are you?', 'what is your name?', "what's your name?", 'what are you called?', 'introduce yourself.',
       'what should I call you?']


def _named(r, words, single):
    n, role = r.choice(words['names']), an(r.choice(KINDS) + r.choice(JOBS)) if r.random() < .67 else ''
    system = x(f'You are {n}, {role}.' if role else f'{{You are {n}.|Your name is {n}.}}', r)
    system += x('{|||| Be kind.| Be brief.| Help the user.}', r)
    turn = (ask(r, *WHO), f'My name is {n}.', f'I am {n}{", " + role if role else ""}.')
    before = [single(r) for _ in range(r.choice([0, 1, 1, 2]))]
    return system, [*before, turn, *([greeting(r)] if r.random() < .2 else [])]


def _pirate(r, words, single):
    system = x('{You are a pirate|Talk like a pirate|You are a friendly pirate|Speak like a pirate}.', r)
    turns = [(q, th, 'Arr! ' + a, *more) for q, th, a, *more in [single(r) for _ in range(r.choice([1, 1, 2]))]]
    hello = (greeting(r)[0], 'A pirate says hello.', x('{Arr! Ahoy, matey!|Arr! Welcome aboard!}', r))
    if r.random() < .5: turns[-1] = r.choice([hello, (ask(r, *WHO), 'I am a pirate.', 'Arr! I am a pirate.')])
    return system, turns


def _ending(r, words, single):
    e = r.choice([*ENDINGS, f'Yours, {r.choice(words["names"])}.'])
    system = x(f'{{End|Finish|Close}} {{every|each}} {{reply|answer|message}} with {{{e}|"{e}"|the words "{e}"}}', r)
    return system, [(q, th, f'{a} {e}', *more) for q, th, a, *more in [single(r) for _ in range(r.choice([1, 2]))]]


def _fact(r, words, single):
    n, c, t = r.choice(words['names']), r.choice(words['cities']), r.choice(words['colours'])
    system, q, a = r.choice([
        (f'The user is called {n}.', 'what is my name?', f'Your name is {n}.'),
        (f'The name of the user is {n}.', 'who am i?', f'Your name is {n}.'),
        (f'The user lives in {c}.', 'where do i live?', f'You live in {c}.'),
        (f'The user likes {t}.', 'what is my favourite colour?', f'Your favourite colour is {t}.')])
    turns = [single(r) for _ in range(r.choice([0, 1, 1, 2]))]
    return system, [*turns, (ask(r, q), 'The system prompt says it.', a)]


def _brief(r, words, single):
    system = x('{Be brief|Be very brief|Answer with one word|Answer in one word|Answer with one word only|'
               'Give short answers}.', r)

    def turn():
        i, j = r.randint(0, 50), r.randint(0, 50)
        (c, t), (o, p) = r.choice(words['capitals']), r.choice(words['opposites'])
        return r.choice([
            (_question(r, i, '+', j), f'{i} + {j} = {i + j}.', f'{i + j}.'),
            (ask(r, f'{{what is|what\'s|name}} the capital of {c}?'), f'It is {t}.', f'{t}.'),
            (ask(r, f'what is the opposite of {o}?'), f'It is {p}.', f'{cap(p)}.'),
            (greeting(r)[0], 'The user greets me.', 'Hello!')])
    return system, [turn() for _ in range(r.choice([1, 2, 3]))]


def told(r, words, single):
    """A conversation whose system prompt changes the replies. @returns (system, turns)"""
    return r.choices([_named, _pirate, _ending, _fact, _brief], [30, 20, 20, 15, 15])[0](r, words, single)

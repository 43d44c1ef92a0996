"""How texts of the corpus are worded: patterns with alternatives, and the ways in which people type."""
import re


def x(pattern, r):
    """Expand the innermost {a|b|c} groups of a pattern until none is left."""
    while '{' in pattern:
        pattern = re.sub(r'\{([^{}]*)\}', lambda m: r.choice(m.group(1).split('|')), pattern)
    return pattern


def an(w): return ('an ' if w[0] in 'aeiou' and not w.startswith('uni') else 'a ') + w
def cap(s): return s[:1].upper() + s[1:]
def join(ws): return ws[0] if len(ws) == 1 else ', '.join(ws[:-1]) + ' and ' + ws[-1]


def mistyped(s, r):
    """Drop, double or swap one letter after the first."""
    i = r.randrange(1, len(s))
    if not s[i - 1:i + 1].isalpha(): return s
    k = r.random()
    if k < .35: return s[:i] + s[i + 1:]
    if k < .65: return s[:i] + s[i] + s[i:]
    return s[:i - 1] + s[i] + s[i - 1] + s[i + 1:]


def cased(s, r, first=.6, lower=.25, upper=.05):
    """Begin with a capital, write small or in capitals, or leave a text as it is."""
    k = r.random()
    if k < first: return cap(s)
    if k < first + lower: return s.lower()
    return s.upper() if k < first + lower + upper else s


def ask(r, *patterns):
    """A user message: pick a pattern, expand it, and vary its surface."""
    s = x(r.choice(patterns), r)
    k = r.random()
    if k < .07 and s[0] != 'I': s = x('{hey|hi|hello|ok|so|well|now|hi there}{,|,|,|!|} ', r) + s[0].lower() + s[1:]
    elif k < .14 and s[-1:] in '?.': s = s[:-1] + x('{, please| please|, thanks}', r) + s[-1]
    s = cased(s, r, .6, .22, .02)
    if r.random() < .25: s = s.rstrip('?.!')
    if r.random() < .08: s = s.replace("'", '')
    if r.random() < .03: s = s + r.choice(['??', '!', '!!', ' :)', '...', ' 🙂'])
    if r.random() < .05 and len(s) > 12: s = s[:3] + mistyped(s[3:], r)
    return s

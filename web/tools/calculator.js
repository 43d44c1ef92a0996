// SPDX-License-Identifier: MIT
// A calculator for expressions that a model writes: numbers, + - * / % ^ and parentheses, parsed by recursive descent.
// Nothing is evaluated as code.

const TOKEN = /\s*(?:((?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)|([-+*/%^()]))/iy;

function tokensOf(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (const end = text.trimEnd().length; TOKEN.lastIndex < end;) {
    const from = TOKEN.lastIndex;
    const [, number, sign] = TOKEN.exec(text) ?? [];
    if (!number && !sign) throw new SyntaxError(`no number and no sign: ${text.slice(from, from + 20)}`);
    tokens.push(number ? Number(number) : sign);
  }
  return tokens;
}

const LEVELS = [
  { '+': (a, b) => a + b, '-': (a, b) => a - b },
  { '*': (a, b) => a * b, '/': (a, b) => a / b, '%': (a, b) => a % b },
];

class Reader {
  #tokens;

  constructor(text) { this.#tokens = tokensOf(text); }

  value() {
    const value = this.#sum(0);
    if (this.#tokens.length) throw new SyntaxError(`unexpected ${this.#tokens[0]}`);
    return value;
  }

  #sum(level) {
    if (level === LEVELS.length) return this.#signed();
    let value = this.#sum(level + 1);
    while (Object.hasOwn(LEVELS[level], this.#tokens[0]))
      value = LEVELS[level][this.#tokens.shift()](value, this.#sum(level + 1));
    return value;
  }

  /** -2^2 is -4, as in mathematics. */
  #signed() {
    if (this.#tokens[0] === '-') return -(this.#tokens.shift() && this.#signed());
    if (this.#tokens[0] === '+') return this.#tokens.shift() && this.#signed();
    const base = this.#single();
    return this.#tokens[0] === '^' ? base ** (this.#tokens.shift() && this.#signed()) : base;
  }

  #single() {
    const token = this.#tokens.shift();
    if (typeof token === 'number') return token;
    if (token !== '(') throw new SyntaxError(token ? `unexpected ${token}` : 'it ends too early');
    const value = this.#sum(0);
    if (this.#tokens.shift() !== ')') throw new SyntaxError('a parenthesis is not closed');
    return value;
  }
}

/** @param {string} text @returns {string} */
export function calculated(text) {
  const value = new Reader(text).value();
  if (!Number.isFinite(value)) throw new RangeError('it has no value');
  return String(Number(value.toPrecision(15)));
}

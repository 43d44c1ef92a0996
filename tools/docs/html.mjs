// SPDX-License-Identifier: MIT
// Turns text into HTML: escaped, coloured as code, or as a name for an address.

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escape = (text) => text.replace(/[&<>"]/g, (letter) => ENTITIES[letter]);

/** The text of markup that this site made. */
export const plain = (html) =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name])
    .replace(/\s+/g, ' ')
    .trim();

/** Keeps `use/context` and `Result.usage`: slashes and dots are allowed in a fragment. */
export const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[`'’]/g, '')
    .replace(/[^a-z0-9/.]+/g, '-')
    .replace(/^-|[-.]$/g, '');

const STRING = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/;
const SCRIPT = {
  comment: /\/\/.*|\/\*[\s\S]*?\*\//,
  string: STRING,
  keyword:
    /\b(?:as|async|await|break|case|catch|class|const|continue|default|delete|else|export|extends|finally|for|from|function|if|import|in|instanceof|interface|let|new|null|of|return|static|switch|this|throw|true|false|try|type|typeof|undefined|using|while|yield)\b/,
  value: /\b\d[\d_.]*\b/,
};
const MARKUP = { comment: /<!--[\s\S]*?-->/, string: /"[^"\n]*"/, keyword: /<\/?[a-z][\w-]*|\/?>/i };
const SHELL = { comment: /(?<=^|\s)#.*/, string: STRING };

/** The syntax of each language for colouring; other languages get no colours. */
const LANGUAGES = {
  js: SCRIPT,
  mjs: SCRIPT,
  ts: SCRIPT,
  jsx: SCRIPT,
  tsx: SCRIPT,
  json: { string: STRING, keyword: /\b(?:true|false|null)\b/, value: SCRIPT.value },
  html: MARKUP,
  vue: MARKUP,
  svelte: MARKUP,
  sh: SHELL,
  nginx: SHELL,
  text: {},
};

const EMBEDDED = /(<script[^>]*>)([\s\S]*?)(<\/script>)/;

/** @returns {string} markup: the code with its comments, strings, keywords and numbers in spans */
export function highlight(code, language) {
  const rules = LANGUAGES[language] ?? {};
  if (rules === MARKUP && EMBEDDED.test(code)) {
    const [before, open, script, close, ...after] = code.split(EMBEDDED);
    return (
      [before, open].map((part) => highlight(part, language)).join('') +
      highlight(script, 'ts') +
      highlight(close + after.join(''), language)
    );
  }
  const names = Object.keys(rules);
  if (!names.length) return escape(code);
  const pattern = new RegExp(names.map((name) => `(?<${name}>${rules[name].source})`).join('|'), 'gim');
  let html = '';
  let end = 0;
  for (const match of code.matchAll(pattern)) {
    const kind = names.find((name) => match.groups[name] !== undefined);
    html += `${escape(code.slice(end, match.index))}<span class="${kind}">${escape(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escape(code.slice(end));
}

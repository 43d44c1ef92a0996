// SPDX-License-Identifier: MIT
// Runs before the first paint, as a plain script: the chosen theme and language must not flash, and a page inside
// somebody else's frame must not show anything a visitor could be tricked into using. English is in the markup. For any
// other language the page stays empty until its table is there (languages/) and the markup is translated, but not for
// ever: without a table it is English. Other parts of the page find the table in `quernWords` (words.js).

/** The languages of the page, as tools/languages.mjs finds them in web/languages/. */
const LANGUAGES = ['en', 'de', 'es', 'fr', 'pt-BR', 'zh-Hans', 'ja', 'ar'];

/** Milliseconds to wait for a table. */
const PATIENCE_MS = 10_000;

const root = document.documentElement;

/** Resolves when the markup is there, before the page's other scripts run. */
const parsed = new Promise((done) => {
  document.addEventListener('readystatechange', done, { once: true });
});

if (self !== self.top) {
  root.dataset.framed = '';
  parsed.then(() => document.body.replaceChildren(document.getElementById('t-framed').content));
}

/** A choice of the visitor; null without storage. */
function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

const theme = stored('quern:theme');
if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;

/** The language of a tag, also within the quotes that shell/storage.js writes: "pt-BR" -> pt */
const stem = (tag) => /[a-z]+/.exec(tag.toLowerCase())?.[0];

const language = [stored('quern:language'), ...navigator.languages]
  .map((wanted) => LANGUAGES.find((one) => stem(one) === stem(wanted ?? '')))
  .find(Boolean);

/** Sets the language of the document. */
function speak(tag) {
  root.lang = tag;
  root.dir = tag === 'ar' ? 'rtl' : 'ltr';
}

async function translated() {
  root.dataset.words = 'coming';
  const late = new AbortController();
  setTimeout(() => late.abort(), PATIENCE_MS);
  try {
    const words = fetch(`./late/${language}.json`, { signal: late.signal }).then((response) => response.json());
    const [table, { translate }] = await Promise.all([words, import('./translate.js'), parsed]);
    translate(table);
    return table;
  } catch {
    speak('en');
    return null;
  } finally {
    delete root.dataset.words;
  }
}

if (language && language !== 'en') {
  speak(language);
  globalThis.quernWords = translated();
}

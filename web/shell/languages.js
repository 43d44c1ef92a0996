// SPDX-License-Identifier: MIT
// The choice of the language, in the settings. boot.js uses it before the first paint of the next visit, so the page is
// loaded again for another language: at once if nothing is lost by that, or else when the visitor says so.
import { announce, byId, button } from './dom.js';
import { forget, read, write } from './storage.js';
import { language, say } from './words.js';

const KEY = 'quern:language';

/** Whether the table of a language can be had, also without a network. '' is the browser's language. */
const isThere = (wanted) =>
  ['', 'en'].includes(wanted) || fetch(`./late/${wanted}.json`).then(({ ok }) => ok, () => false);

/** @param {() => boolean} losesSomething whether a reload would lose something */
export function chooseLanguage(losesSomething) {
  const select = byId('language');
  const tell = (sentence, ...more) => {
    const note = byId('language-note');
    note.replaceChildren(sentence, ...more);
    note.scrollIntoView({ block: 'nearest' });
    announce(sentence);
  };
  select.value = read(KEY) ?? '';
  select.addEventListener('change', async () => {
    const { value } = select;
    if (!await isThere(value)) {
      select.value = read(KEY) ?? '';
      return tell(say`This language cannot be fetched now.`);
    }
    if (!value) forget(KEY);
    else if (!write(KEY, value)) return tell(say`This browser does not let the page store the language.`);
    if (value === language) return tell('');
    if (!losesSomething()) return location.reload();
    const sentence = say`It is used when the page is loaded again. That ends replies, and a model from a file has to be chosen again.`;
    return tell(sentence, ' ', button(say`Load the page again`, () => location.reload(), 'link-button'));
  });
}

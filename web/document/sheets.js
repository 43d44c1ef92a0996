// SPDX-License-Identifier: MIT
// Spreadsheets in Office Open XML (ECMA-376, part 1, 18): XLSX. Each sheet becomes CSV below its name, with the values
// that its program has last computed. A date is a number in the file, which only the format of its cell tells.
import { attribute, decode, parse } from './markup.js';
import { relationsOf } from './office.js';
import { Prose } from './prose.js';

/** Numbers of the built-in formats that show dates or times. */
const isBuiltInDate = (id) => (id >= 14 && id <= 22) || (id >= 45 && id <= 47);

/** A format of a file's own shows a date if it has such a letter outside of quotes, brackets and escapes. */
const isDate = (code) => /[ymdhs]/i.test(code.replaceAll(/"[^"]*"|\[[^\]]*\]|\\./g, ''));

const DAY_MS = 864e5;

/** The strings that cells share, by number. Readings (rPh) are no part of a string. */
function stringsOf(xml) {
  const strings = [];
  let isText = false;
  parse(xml, {
    open(name) {
      if (name === 'si') strings.push('');
      if (name === 't') isText = true;
      return name !== 'rph';
    },
    close(name) { if (name === 't') isText = false; },
    text(text) { if (isText && strings.length) strings.push(strings.pop() + decode(text)); },
  });
  return strings;
}

/** Which formats of cells, by number, show dates. */
function datesOf(xml) {
  const own = new Set();
  const dates = [];
  let isCell = false;
  parse(xml, {
    open(name, source) {
      const id = Number(attribute(source, 'numfmtid'));
      if (name === 'numfmt' && isDate(attribute(source, 'formatcode'))) own.add(id);
      if (name === 'cellxfs') isCell = true;
      if (name === 'xf' && isCell) dates.push(own.has(id) || isBuiltInDate(id));
    },
    close(name) { if (name === 'cellxfs') isCell = false; },
    text() {},
  });
  return dates;
}

/** "2024-05-06", "2024-05-06 07:08", or "07:08". @param {number} days since the first day that the file counts */
function dateText(days, first) {
  const time = new Date(first + Math.round(days * 1440) * 60_000);
  if (Number.isNaN(time.getTime())) return String(days);
  const [date, clock] = time.toISOString().split('T');
  const isWhole = clock.startsWith('00:00');
  return [days >= 1 && date, !(isWhole && days >= 1) && clock.slice(0, 5)].filter(Boolean).join(' ');
}

/** "C7" -> 2; -1 if there is no column */
function columnOf(place) {
  const [letters] = /^[A-Z]{0,3}/.exec(place);
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

/** Writes the rows of a sheet into the prose. */
function writeSheet(xml, prose, { strings, dates, first }) {
  let row = [];
  let cell = { column: 0 };
  let value = '';
  let isValue = false;
  const shown = ({ type, style }) => {
    if (type === 's') return strings[Number(value)] ?? '';
    if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
    return !type || type === 'n' ? (value && dates[style] ? dateText(Number(value), first) : value) : value;
  };
  const opening = {
    __proto__: null,
    row: () => { row = []; },
    c: (source) => {
      const column = columnOf(attribute(source, 'r'));
      cell = { type: attribute(source, 't'), style: Number(attribute(source, 's')) };
      cell.column = column < 0 ? row.length : column;
      value = '';
    },
    v: () => { isValue = true; },
    t: () => { isValue = true; },
  };
  const closing = {
    __proto__: null,
    row: () => {
      if (!row.some(Boolean)) return;
      prose.add(Array.from(row, (one) => quoted(one ?? '')).join(','));
      prose.end(1);
    },
    c: () => { row[cell.column] = shown(cell); },
    v: () => { isValue = false; },
    t: () => { isValue = false; },
  };
  parse(xml, {
    open(name, source) {
      opening[name]?.(source);
      return name !== 'rph';
    },
    close(name) { closing[name]?.(); },
    text(text) { if (isValue) value += decode(text); },
  });
}

/** @param {import('./zip.js').Zip} zip @returns {Promise<string>} */
export async function readSheets(zip, onPart) {
  const targets = await relationsOf(zip, 'xl', 'workbook.xml');
  const sheets = [];
  let first = Date.UTC(1899, 11, 30);
  parse(await zip.text('xl/workbook.xml'), {
    open(name, source) {
      if (name === 'sheet') sheets.push([attribute(source, 'name'), targets.get(attribute(source, 'r:id'))]);
      if (name === 'workbookpr' && /^(?:1|true)$/.test(attribute(source, 'date1904'))) first = Date.UTC(1904, 0, 1);
    },
    close() {},
    text() {},
  });
  const strings = stringsOf(await zip.text('xl/sharedStrings.xml'));
  const dates = datesOf(await zip.text('xl/styles.xml'));
  const prose = new Prose();
  for (const [i, [name, path]] of sheets.entries()) {
    onPart(i, sheets.length, 'sheet');
    prose.add(name);
    prose.end(2, '## ');
    writeSheet(await zip.text(path), prose, { strings, dates, first });
    prose.end(2);
  }
  return prose.toString();
}

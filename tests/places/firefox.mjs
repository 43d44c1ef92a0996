// SPDX-License-Identifier: MIT
// Firefox as Debian has it, which nobody drives: the package, isolated and not. Its chat page: tests/web/firefox-page.test.mjs.
import { findFirefox } from '../bench/firefox.mjs';
import { openFirefox } from '../web/undriven.mjs';
import { libraryCases, openUnbundled } from './unbundled.mjs';
import { outputOf } from './workshop.mjs';

export const title = 'Firefox';

const CONDITIONS = { isolated: { isolate: true, threads: 2 }, 'not isolated': { isolate: false, threads: 1 } };

const version = () => /[\d.]+/.exec(outputOf(findFirefox(), ['--version']))[0];

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `Firefox, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => openUnbundled({ kind: 'Firefox', ...condition, open: openFirefox }, t),
  cases: libraryCases(condition),
}));

// SPDX-License-Identifier: MIT
// Which tools the visitor has switched on. It is stored apart from the settings, because presets and links hold whether
// tools are used, but never which: no link may switch on what runs programs or reaches a server.
import { read, write } from '../shell/storage.js';

const KEY = 'quern:tools';

/** The page's own tools, and whether they are on until the visitor decides. */
export const OWN = { now: true, calculate: true, search_documents: true, run_javascript: false };

/** What is stored, with the known fields only. */
function stored() {
  const { switches } = read(KEY) ?? {};
  return { switches: Object.fromEntries(Object.keys(OWN).map((name) => [name, switches?.[name]])) };
}

/** @param {string} name of one of the page's own tools */
export const isOn = (name) => {
  const chosen = stored().switches[name];
  return typeof chosen === 'boolean' ? chosen : OWN[name];
};

/** @returns {boolean} whether it could be stored */
export function turn(name, on) {
  const before = stored();
  return write(KEY, { ...before, switches: { ...before.switches, [name]: on } });
}

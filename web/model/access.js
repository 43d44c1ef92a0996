// SPDX-License-Identifier: MIT
// Access tokens for models that are not open to everybody. A token belongs to one server, is sent to no other, and is
// forgotten when the page is closed.
import { element } from '../shell/dom.js';
import { say } from '../shell/words.js';

const tokens = new Map();   // by origin

/** Options of `load` for an address, with its token. */
export function accessFor(source) {
  const token = typeof source === 'string' && tokens.get(new URL(source).origin);
  return token ? { headers: { Authorization: `Bearer ${token}` } } : {};
}

/** A form that asks for the token of an address's server. @param {() => void} onGiven */
export function tokenForm(source, onGiven) {
  const { origin, host } = new URL(source);
  const field = element('input', { type: 'password', autocomplete: 'off', placeholder: say`Access token` });
  field.setAttribute('aria-label', say`Access token for ${host}, kept until this page is closed`);
  field.dataset.testid = 'token';
  const onsubmit = (event) => {
    event.preventDefault();
    const token = field.value.trim();
    if (!/^[\x21-\x7e]+$/.test(token)) return field.focus();
    tokens.set(origin, token);
    return onGiven();
  };
  return element(
    'form',
    { className: 'token', onsubmit },
    field,
    element('button', { type: 'submit', className: 'button' }, say`Use it`),
  );
}

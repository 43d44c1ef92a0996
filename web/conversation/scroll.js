// SPDX-License-Identifier: MIT
// Keeps the end of the conversation in view while it grows, unless the visitor has scrolled away from it; then a
// button leads back.
import { byId } from '../shell/dom.js';

/** Closer to the end than this, in CSS pixels, counts as being there. */
const NEAR = 80;

/** @returns {() => void} goes to the end and stays there */
export function followEnd() {
  const scroller = byId('scroller');
  const toEnd = byId('to-end');
  let following = true;
  const isNear = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
  const follow = () => {
    if (following) scroller.scrollTop = scroller.scrollHeight;
    toEnd.hidden = isNear();
  };
  const jump = () => {
    following = true;
    follow();
  };
  scroller.addEventListener('scroll', () => {
    following = isNear();
    toEnd.hidden = following;
  }, { passive: true });
  const watcher = new ResizeObserver(follow);
  watcher.observe(byId('log'));
  watcher.observe(scroller);
  toEnd.addEventListener('click', jump);
  return jump;
}

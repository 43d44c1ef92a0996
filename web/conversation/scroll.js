// SPDX-License-Identifier: MIT
// Keeps the end of the conversation in view while it grows, until the visitor moves up from where the page has scrolled
// to; then a button leads back, and so does scrolling to the end. Nothing is scrolled while a wheel or finger is at
// work.
import { byId } from '../shell/dom.js';

/** Closer to the end than this, in CSS pixels, needs no button. */
const NEAR = 80;

/** Positions are fractions of pixels on some screens. */
const SLACK = 2;

/** How long after a turn of the wheel it is seen where that led. */
const HOLD_MS = 200;

/** @returns {() => void} goes to the end and stays there */
export function followEnd() {
  const [scroller, toEnd, log] = ['scroller', 'to-end', 'log'].map(byId);
  let following = true;
  let place = 0;      // where the page itself has scrolled to
  let known = 0;      // the end as the visitor saw it last: more may have come since
  let held = 0;
  // when it showed: what was under way then does not count yet, nor what was cut short and has grown back within a
  // frame
  let jumped = -HOLD_MS;
  const end = () => scroller.scrollHeight - scroller.clientHeight;
  const showButton = () => { toEnd.hidden = following || end() - scroller.scrollTop < NEAR; };
  const follow = () => {
    known = end();
    if (following && !held && log.childElementCount) {
      scroller.scrollTop = known;
      place = scroller.scrollTop;
    }
    showButton();
  };
  const letGo = () => {
    held = clearTimeout(held);
    follow();
  };
  const hold = () => {
    clearTimeout(held);
    held = setTimeout(letGo, HOLD_MS);
  };
  const jump = () => {
    following = true;
    jumped = Infinity;      // until two frames are out, which may take a slow machine longer than all the rest
    requestAnimationFrame(() => requestAnimationFrame(() => { jumped = performance.now(); }));
    letGo();
  };
  const look = () => {
    const at = scroller.scrollTop;
    const last = end();
    // What has become shorter has moved everybody up; a few lines may have come since, many are older messages that
    // were put before.
    if (at >= last - SLACK || (at >= known - SLACK && last - known < NEAR)) following = true;
    else if (at < Math.min(place, last) - SLACK) {
      if (performance.now() - jumped > HOLD_MS) following = false;
      else setTimeout(() => (held ? look() : follow()), HOLD_MS);
    }
    showButton();
  };
  scroller.addEventListener('scroll', look, { passive: true });
  for (const type of ['wheel', 'touchmove', 'keydown']) scroller.addEventListener(type, hold, { passive: true });
  const watcher = new ResizeObserver(follow);
  for (const node of [log, scroller]) watcher.observe(node);
  toEnd.addEventListener('click', jump);
  return jump;
}

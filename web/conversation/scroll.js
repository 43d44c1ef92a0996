// SPDX-License-Identifier: MIT
// Keeps the end of the conversation in view while it grows, until the visitor scrolls up. Then a button leads back to
// the end, and so does scrolling there. The page scrolls nothing while a wheel or a finger does.
import { byId } from '../shell/dom.js';

/** Distance from the end, in CSS pixels, within which no button is needed. */
const NEAR = 80;

/** Tolerance, since positions are fractions of pixels on some screens. */
const SLACK = 2;

/** Milliseconds after a turn of the wheel until its effect is judged. */
const HOLD_MS = 200;

/** Hides or shows an element; setting the same again would cost each frame of a growing reply its styles once more. */
const hide = (node, hidden) => { if (node.hidden !== hidden) node.hidden = hidden; };

/** @returns {{toEnd: () => void, stay: () => void}} scrolls to the end and stays there; stays where it is from now on */
export function followEnd() {
  const [scroller, toEnd, log] = ['scroller', 'to-end', 'log'].map(byId);
  let following = true;
  let place = 0;      // position that the page itself has scrolled to
  let known = 0;      // the end that the visitor saw last; text may have come since
  let held = 0;
  // time of the last jump; movements that began before it do not count, nor text that was shortened and grew back
  // within a frame
  let jumped = -HOLD_MS;
  const end = () => scroller.scrollHeight - scroller.clientHeight;
  const showButton = () => hide(toEnd, following || end() - scroller.scrollTop < NEAR);
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
    jumped = Infinity;      // until two frames have passed, which may take long on a slow machine
    requestAnimationFrame(() => requestAnimationFrame(() => { jumped = performance.now(); }));
    letGo();
  };
  const look = () => {
    const at = scroller.scrollTop;
    const last = end();
    // A shorter text moves the position up. A few new lines are new text; many are older messages, inserted above.
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
  const stay = () => {
    following = false;
    showButton();
  };
  return { toEnd: jump, stay };
}

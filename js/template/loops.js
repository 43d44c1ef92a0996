// SPDX-License-Identifier: MIT
// Loops: `for`, whose condition becomes a loop of its own, `break` and `continue`.

import { Bodies } from './bodies.js';

export class Loops extends Bodies {
  for() {
    const to = this.skipTarget(false);
    if (!this.tookWord('in')) this.wrong("the word 'in' is missing");
    this.tuple({ conditional: false, stop: 'recursive' });
    this.inner++;
    this.loops++;
    const condition = this.tookWord('if') ? this.skip(() => this.expression()) : undefined;
    const isRecursive = this.tookWord('recursive');
    const { soft } = this;
    this.soft = 0;
    if (!isRecursive) this.#loopOf(to, condition);
    else this.closed(() => this.#recursive(() => this.#loopOf(to, condition, this.code.length)));
    this.soft = soft;
    this.loops--;
    this.inner--;
  }

  #recursive(loop) {
    this.emit('callLoop');
    const skip = this.emit('jump');
    loop();
    this.emit('return');
    this.link(skip);
    this.emit('print');
  }

  #loopOf(to, condition, entry) {
    if (condition !== undefined) this.#collect(to, condition);
    this.emit('for', { entry: entry === undefined ? 0 : this.code.length - entry + 1, collects: false });
    this.#loopBody(to);
  }

  #nextItem(to) {
    const next = this.emit('next');
    this.targetAgain(to, false);
    return next;
  }

  /** The `if` of a loop: a loop of its own, which collects the items for the main one. */
  #collect(to, condition) {
    this.emit('for', { entry: 0, collects: true });
    const next = this.#nextItem(to);
    this.again(condition, () => this.expression());
    this.link(this.emit('collect'), next);
    this.link(next);
    this.emit('done');
  }

  #loopBody(to) {
    const next = this.#nextItem(to);
    const loop = { next, breaks: [] };
    const outer = this.loop;
    this.loop = loop;
    const word = this.bodyOf('endfor', 'else');
    this.loop = outer;
    this.link(this.emit('again'), next);
    for (const jump of [next, ...loop.breaks]) this.link(jump);
    const done = this.emit('done');
    if (word === 'else') this.scope(() => this.bodyOf('endfor'));
    this.link(done);
  }

  break() {
    if (!this.loop) this.wrong('there is no loop to leave');
    this.emit('leave');
    this.loop.breaks.push(this.emit('jump'));
  }

  continue() {
    if (!this.loop) this.wrong('there is no loop to continue');
    this.emit('leave');
    this.link(this.emit('jump'), this.loop.next);
  }
}

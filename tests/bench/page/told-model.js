// SPDX-License-Identifier: MIT
// A played model for replies.mjs: it says `globalThis.told.pieces`, one each `globalThis.told.ms`.
import { Reply } from '../../../js/page/reply.js';

const INFO = { name: 'told', architecture: 'told', contextSize: 8192, contextLength: 8192, thinking: false, threads: 2, memory: { used: 1 }, vision: null };

class ToldModel {
  info = INFO;

  chat() {
    return new Reply((push) => {
      const { pieces, ms } = globalThis.told;
      const start = performance.now();
      const { promise, resolve } = Promise.withResolvers();
      let said = 0;
      const say = () => {
        for (; said < pieces.length && performance.now() - start >= said * ms; said++) push({ type: 'text', text: pieces[said] });
        if (said < pieces.length) {
          setTimeout(say, start + said * ms - performance.now());
          return;
        }
        const usage = { promptTokens: 10, cachedTokens: 0, completionTokens: said };
        resolve({ finishReason: 'stop', usage, timings: { waitMs: 0, prefillMs: 1, decodeMs: 1, tokensPerSecond: 1000 / ms } });
      };
      setTimeout(say);
      return { promise, stop: () => {} };
    });
  }

  async forget() {}

  async countTokens() { return 10; }

  async dispose() {}
}

export const load = async () => new ToldModel();

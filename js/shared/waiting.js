// SPDX-License-Identifier: MIT
// How many sequences may wait beside those that an engine computes (`parallel`), and how many of them in the
// background, so that lists of texts leave places to replies. The engine refuses what is more (src/engine/scheduler.c),
// and before it does the worker (worker/runner.js); a server has its clients wait so that neither happens
// (cli/serve-queue.js).

export const WAITING = 64;
export const WAITING_BEHIND = 32;

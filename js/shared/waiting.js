// SPDX-License-Identifier: MIT
// Limits of waiting sequences, in addition to the `parallel` ones that an engine computes: in all, and in the
// background, so that lists of texts leave places for replies. The engine refuses more (src/engine/scheduler.c), and
// the worker does so before (worker/runner.js). A server lets its clients wait so that neither happens
// (cli/serve-queue.js).

export const WAITING = 64;
export const WAITING_BEHIND = 32;

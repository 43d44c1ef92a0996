// SPDX-License-Identifier: MIT
// Part of the glue (--js-library): for pages, how it starts a thread. Emscripten's own way is a module that makes a worker of
// itself, which bundlers split wrongly or never; here a function of the caller's does it, from a file of its own (js/thread.js).

#if !ENVIRONMENT_MAY_BE_NODE
LibraryManager.library.$PThread.allocateUnusedWorker = () => {
  PThread.unusedWorkers.push(Module['startThread']());
};
#endif

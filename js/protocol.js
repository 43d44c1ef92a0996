// SPDX-License-Identifier: MIT
// The messages between the page and the engine worker: plain objects with a `type`. A request has an `id`, which
// every answer to it repeats. Both sides import this file and nothing else of each other.
//
//   page -> worker                                   worker -> page
//   load, download  id source options                ready
//   chat       id messages options                   done      id value
//   complete   id prompt options                     error     id error
//   tokenize   id text                               event     id event   (progress, prefill, text, thinking)
//   detokenize id ids                                fatal     error      (the engine is dead)
//   count      id input thinking                     notice    text       (for the console)
//   logits     id ids
//   profile    id
//   stop       target
//
// The abort word: where memory is shared, the page also writes the id of the request to stop into the word at
// `control` of the engine's memory, which ends a running step between two layers. The `stop` message remains what
// decides; the word only makes the engine look at its messages at once.

export const READY = 'ready';
export const LOAD = 'load';
export const DOWNLOAD = 'download';
export const CHAT = 'chat';
export const COMPLETE = 'complete';
export const TOKENIZE = 'tokenize';
export const DETOKENIZE = 'detokenize';
export const COUNT = 'count';
export const LOGITS = 'logits';
export const PROFILE = 'profile';
export const STOP = 'stop';

export const DONE = 'done';
export const ERROR = 'error';
export const EVENT = 'event';
export const FATAL = 'fatal';
export const NOTICE = 'notice';

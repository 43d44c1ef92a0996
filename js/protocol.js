// SPDX-License-Identifier: MIT
// The messages between the page and the engine worker: plain objects with a `type`. A request has an `id`, which every
// answer to it repeats.
//
//   page -> worker                                   worker -> page
//   load, download  id source options                ready
//   chat       id messages options                   done      id value
//   complete   id prompt options                     error     id error
//   tokenize   id text                               event     id event   (progress, prefill, text, thinking)
//   detokenize id ids                                fatal     error      (the engine is dead)
//   count      id input thinking                     notice    text       (for the console)
//   logits     id ids
//   profile    id                                    control   memory control lost
//   stop       target                                lifeline  name      (of a lock: see lifeline.js)
//   ping                                             pong
//
// `control` names words in shared memory, for while the engine computes and hears nothing: abort word and heartbeat (struct
// quern_control), and one that is set when a thread has ended. The abort word's id only hurries the `stop` message, which decides.

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
export const PING = 'ping';

export const DONE = 'done';
export const ERROR = 'error';
export const EVENT = 'event';
export const FATAL = 'fatal';
export const NOTICE = 'notice';
export const CONTROL = 'control';
export const LIFELINE = 'lifeline';
export const PONG = 'pong';

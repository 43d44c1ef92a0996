// SPDX-License-Identifier: MIT
// The messages between the page and the engine worker: plain objects with a `type`. An answer repeats its request's id.
//
//   page -> worker                                   worker -> page
//   load, download  id source options                ready
//   chat       id messages media options stopped     done      id value
//   complete   id prompt options                     error     id error
//   tokenize   id text options                       events    events     ([id, event] each)
//   detokenize id ids bytes options                  fatal     error      (the engine is dead)
//   prompt     id messages media options             notice    text       (for the console)
//   logits     id ids options, or messages too       lifeline  name      (of a lock: see lifeline.js)
//   look       id media options                      pong
//   vectors    id texts query options
//   forget     id name
//   draft      id port serves
//   profile, saved, ping   id;   stop  target;   end (Node's alone)
//
// Options tell the owner of a request: `cacheScope`, and `guest`, one of the guests of that scope (worker/turns.js).

/**
 * A medium as sent to the worker. An image has one frame, in the platform's form. A video has several; `sample` tells
 * how many of them to use, and null means all.
 * @typedef {object} Medium
 * @property {'image' | 'video'} kind
 * @property {any[]} frames
 * @property {'low' | 'auto' | 'high'} [detail]
 * @property {number} [maxPixels]
 * @property {number} [fps] of the video as it was recorded
 * @property {number[]} [timestamps] of each frame
 * @property {{perSecond: number, least: number, most: number} | null} [sample]
 */

export const READY = 'ready';
export const LOAD = 'load';
export const DOWNLOAD = 'download';
export const CHAT = 'chat';
export const COMPLETE = 'complete';
export const TOKENIZE = 'tokenize';
export const DETOKENIZE = 'detokenize';
export const PROMPT = 'prompt';
export const LOGITS = 'logits';
export const LOOK = 'look';
export const VECTORS = 'vectors';
export const PROFILE = 'profile';
export const SAVED = 'saved';
export const FORGET = 'forget';
export const DRAFT = 'draft';
export const STOP = 'stop';
export const PING = 'ping';
export const END = 'end';

export const DONE = 'done';
export const ERROR = 'error';
export const EVENTS = 'events';
export const FATAL = 'fatal';
export const NOTICE = 'notice';
export const LIFELINE = 'lifeline';
export const PONG = 'pong';

/**
 * An event of `load` and `download`: a compiled engine (`build`, the caller's `url`, `module`), to be passed in the
 * `engines` option of later ones.
 */
export const ENGINE = 'engine';

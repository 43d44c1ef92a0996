// SPDX-License-Identifier: MIT
// A stranger's page. The address after the # says where the model is, and the worker, if that has to be said.
import { load } from 'quern';
import { answer } from './answer.js';

const { model, ...options } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

answer(load, model, options).then((outcome) => {
  globalThis.outcome = { ...outcome, isolated: crossOriginIsolated };
});

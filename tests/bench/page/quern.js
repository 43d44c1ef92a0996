// SPDX-License-Identifier: MIT
// quern in a page, through its public interface alone.
import { load as loadModel } from '../../../dist/index.js';
import { driver } from './driver.js';

export const { load, complete, stream } = driver(loadModel);

/** The model from the store, where it is put first if it is not there. */
export const loadKept = (options) => load({ ...options, store: true });

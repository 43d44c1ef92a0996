// SPDX-License-Identifier: MIT
// quern in Node, through its public interface alone.
import { load as loadModel } from '../../../dist/node.js';
import { driver } from '../page/driver.js';

export const { load, complete } = driver(loadModel);

#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The start of the command line. It prints help and version at once. The code for models is in a file of its own
// (cli-main.js), which is loaded when it is needed.

import { createRequire } from 'node:module';
import { help } from './cli-help.js';
import { guardOutput } from './cli-terminal.js';

const args = process.argv.slice(2);
const text = args[0] === '--version' ? `${createRequire(import.meta.url)('../package.json').version}\n` : help(args);

guardOutput();
if (text === null) await (await import('./cli-main.js')).main(args);
else process.stdout.write(text);

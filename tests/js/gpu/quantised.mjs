// SPDX-License-Identifier: MIT
// Run by quantised.test.mjs: the logits and the fingerprint of folders that other programs quantised, whose scales are
// stored apart from the codes, on a device and by the processor's scalar kernels. Arguments: the folders' names.

import { readFile } from 'node:fs/promises';
import { PROJECT } from '../../fixtures/golden.mjs';
import { QUANTISED_TOKENS } from '../../fixtures/quantised.mjs';
import { differing, logitsOf, open, printOf, tell } from './engines.mjs';

const FILES = ['config.json', 'tokenizer.json', 'model.safetensors'];
const filesOf = (name) => Promise.all(FILES.map((file) => readFile(`${PROJECT}/tests/fixtures/quantised/${name}/${file}`)));

/** More rows than a product of few rows has. */
const IDS = [...QUANTISED_TOKENS, ...QUANTISED_TOKENS.map((id) => id + 1)];

for (const name of process.argv.slice(2)) {
  const files = await filesOf(name);
  const processor = await open(files);
  const expected = await logitsOf(processor.engine, IDS);
  const print = await printOf(processor);
  for (const chunk of [32, 3]) {
    const opened = await open(files, { onDevice: true, chunk });
    const isAlike = await printOf(opened) === print;
    const found = await logitsOf(opened.engine, IDS);
    tell({ name, chunk, isAlike, differ: differing(found, expected), of: found.length / 4 });
    opened.device.close();
  }
}
process.exit();

// SPDX-License-Identifier: MIT
// JSON-Schema-Test-Suite, as the source package of PyPI's `jsonschema` has it: every schema is honoured or refused by name, and of those honoured
// every valid value is accepted and every invalid one is not. Then random schemas against ajv, thousands.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { PROJECT } from '../fixtures/golden.mjs';
import { SchemaLines } from '../fixtures/schema-lines.mjs';

const PACKAGE = 'jsonschema-4.26.0';
const FOLDER = join(PROJECT, 'build/schemas');
const SUITE = join(FOLDER, PACKAGE, 'json/tests');
const DRAFTS = { 'draft2020-12': 2020, 'draft2019-09': 2019, draft7: 7, draft6: 6, draft4: 4 };
const MOST_REFUSED = 0.15;

function fetchSuite() {
  if (existsSync(SUITE)) return;
  mkdirSync(FOLDER, { recursive: true });
  const steps = [['python3', '-m', 'pip', 'download', '-q', '--no-deps', '--no-binary', ':all:', PACKAGE.replace('-', '==')], ['tar', 'xf', `${PACKAGE}.tar.gz`]];
  for (const [program, ...args] of steps) {
    const done = spawnSync(program, args, { cwd: FOLDER, encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
  }
}

describe('JSON-Schema-Test-Suite', () => {
  fetchSuite();
  const lines = new SchemaLines();
  after(() => lines.end());

  /** Values that are accepted and should not be, or the other way. `format` is an assertion here, and in this suite only a note; and a
   * dialect without assertions is read as one with them. */
  const wrongOf = async (group, file, never) => {
    const wrong = [];
    for (const one of group.tests) {
      if (['format.json', 'vocabulary.json'].includes(file) && one.valid) continue;
      const accepted = !never && await lines.accepts(one.data);
      if (accepted !== one.valid) wrong.push(`${file}: ${group.description}: ${one.description}`);
    }
    return wrong;
  };

  for (const [draft, number] of Object.entries(DRAFTS)) {
    test(draft, async (t) => {
      const refused = {};
      const wrong = [];
      let groups = 0;
      for (const file of readdirSync(join(SUITE, draft)).filter((name) => name.endsWith('.json'))) {
        for (const group of JSON.parse(readFileSync(join(SUITE, draft, file), 'utf8'))) {
          groups++;
          const refusal = await lines.compile(group.schema, number);
          const never = refusal?.rule === 'nothing';
          if (refusal && !never) refused[refusal.rule] = (refused[refusal.rule] ?? 0) + 1;
          else wrong.push(...await wrongOf(group, file, never));
        }
      }
      const count = Object.values(refused).reduce((sum, n) => sum + n, 0);
      t.diagnostic(`${groups} schemas, ${count} refused: ${JSON.stringify(refused)}`);
      assert.deepEqual(wrong, []);
      assert.ok(groups > 150 && count <= MOST_REFUSED * groups, `${count} of ${groups} refused`);
    });
  }
});

// The test of every run, with more of them. (Node's test runner in a child of its own runs nothing.)
process.env.QUERN_LONG = '1';
await import('../js/grammar/schemas.test.mjs');

// SPDX-License-Identifier: MIT
// Reads the declarations in js/*.d.ts with TypeScript's own parser: names, signatures as written in the file, and their
// comments. The documentation repeats none of it by hand.

import { readFileSync } from 'node:fs';
import { SyntaxKind } from 'typescript/unstable/ast';
import { createVirtualFileSystem } from 'typescript/unstable/fs';
import { API } from 'typescript/unstable/sync';

const KINDS = new Map([
  [SyntaxKind.InterfaceDeclaration, 'interface'],
  [SyntaxKind.TypeAliasDeclaration, 'type'],
  [SyntaxKind.FunctionDeclaration, 'function'],
  [SyntaxKind.ClassDeclaration, 'class'],
  [SyntaxKind.VariableStatement, 'const'],
]);

const COMMENT = /\/\*\*[\s\S]*?\*\//g;

/** The text of a doc comment. Links become code, which the pages link themselves. */
function wordsOf(comment) {
  return comment.replace(/^\/\*\*|\*\/$/g, '').replace(/^[ \t]*\* ?/gm, '').trim()
    .replace(/\{@link ([^}]+)\}/g, '`$1`').replace(/@returns (.)/g, (_, first) => `Returns ${first}`);
}

/** The comments before a node; the last one is its own. */
function docOf(node, file) {
  const comments = file.text.slice(node.pos, node.getStart(file)).match(COMMENT) ?? [];
  return comments.length ? wordsOf(comments.at(-1)) : '';
}

const bare = (text) =>
  text
    .replace(COMMENT, '')
    .replace(/\s+/g, ' ')
    .replace(/[;{ ]+$/, '')
    .replace(/^(?:export |declare )+/, '')
    .trim();

/** The first object type within a node that has comments of its own; its members are described one by one. */
function documentedLiteral(node, file) {
  if (node.kind === SyntaxKind.TypeLiteral && node.getText(file).includes('/**')) return node;
  return node.forEachChild((child) => documentedLiteral(child, file)) ?? null;
}

/** Members of an interface, a class or an object type. `path`: the name in comments and links. */
function membersOf(node, file, path) {
  return node.members.map((member) => {
    const text = member.getText(file);
    const name = member.name?.getText(file) ?? 'constructor';
    const literal = member.type ? documentedLiteral(member.type, file) : null;
    const [before, after] = literal ? text.split(literal.getText(file)) : [text, ''];
    const signature = literal ? `${bare(before)} { … }${bare(after)}` : bare(text);
    return {
      name,
      path: `${path}.${name.replace(/[[\]]/g, '')}`,
      doc: docOf(member, file),
      isReadonly: /^readonly /.test(signature),
      signature: signature.replace(/\breadonly (?=[\w$]+\??:)/g, ''),
      members: literal ? membersOf(literal, file, `${path}.${name}`) : [],
    };
  });
}

function declarationOf(node, file) {
  const name = node.name?.getText(file) ?? node.declarationList.declarations[0].name.getText(file);
  const text = node.getText(file);
  const members = node.members ? membersOf(node, file, name) : [];
  return {
    name,
    kind: KINDS.get(node.kind),
    doc: docOf(node, file),
    signature: bare(node.members ? text.slice(0, text.indexOf('{')) : text),
    members,
  };
}

/** A file's introduction: the comment before everything else. */
export const introductionOf = (path) => wordsOf((readFileSync(path, 'utf8').match(COMMENT) ?? [''])[0]);

/** @returns {object[]} all exports of the file, in order */
export function readDeclarations(path) {
  const text = readFileSync(path, 'utf8');
  const config = JSON.stringify({ compilerOptions: { noLib: true, types: [] }, files: ['index.d.ts'] });
  const api = new API({ cwd: '/', fs: createVirtualFileSystem({ '/tsconfig.json': config, '/index.d.ts': text }) });
  try {
    const file = api
      .updateSnapshot({ openProject: '/tsconfig.json' })
      .getProjects()[0]
      .program.getSourceFile('/index.d.ts');
    return file.statements.filter(({ kind }) => KINDS.has(kind)).map((node) => declarationOf(node, file));
  } finally {
    api.close();
  }
}

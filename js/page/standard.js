// SPDX-License-Identifier: MIT
// Schemas that libraries make (Zod, Valibot, ArkType and others): what has `~standard` says by itself what JSON it
// takes, and judges values. Documented at https://standardschema.dev; no library is imported, so none has to be there.

import { badParam } from '../shared/errors.js';
import { isObject } from '../shared/kinds.js';

const TARGET = { target: 'draft-2020-12' };

/** Schemas of some libraries are functions. */
const mayBeSchema = (value) => isObject(value) || typeof value === 'function';

const standardOf = (schema) => (mayBeSchema(schema) && mayBeSchema(schema['~standard']) ? schema['~standard'] : null);

/** The JSON Schema of what has to be written; anything else as it is. */
export function schemaOf(schema, path) {
  const standard = standardOf(schema);
  if (!standard) return schema;
  let said;
  try {
    said = standard.jsonSchema?.input(TARGET) ?? schema.toJSONSchema?.({ io: 'input' }) ?? schema.toJsonSchema?.();
  } catch (error) {
    const why = String(error?.message ?? error).slice(0, 200);
    throw Object.assign(badParam(path, `has no JSON Schema (${why})`), { cause: error });
  }
  if (mayBeSchema(said)) return said;
  throw badParam(path, `is a schema of '${String(standard.vendor).slice(0, 40)}' that does not say its JSON Schema: `
    + 'give that (z.toJSONSchema(schema)), or take a version that has ~standard.jsonSchema');
}

/** The tool with its parameters as JSON Schema, which others call its inputSchema. */
export function toolOf(tool, path) {
  if (tool?.inputSchema == null) {
    return standardOf(tool?.parameters)
      ? { ...tool, parameters: schemaOf(tool.parameters, `${path}.parameters`) }
      : tool;
  }
  const { inputSchema, ...rest } = tool;
  if (rest.parameters != null)
    throw badParam(`${path}.inputSchema`, 'is another name of parameters: a tool has one of them');
  return { ...rest, parameters: schemaOf(inputSchema, `${path}.inputSchema`) };
}

/**
 * What a schema makes of a value that its JSON Schema allows: `value`, or `issues`.
 * @returns {Promise<{value?: any, issues?: readonly any[]}>}
 */
export async function judged(schema, value) {
  const standard = standardOf(schema);
  if (!standard) return { value };
  const { value: output, issues } = await standard.validate(value);
  return issues ? { issues } : { value: output };
}

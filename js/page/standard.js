// SPDX-License-Identifier: MIT
// Schemas that libraries make (Zod, Valibot, ArkType and others). An object with `~standard` can describe the JSON that
// it accepts, and validates values. Documented at https://standardschema.dev; no library is imported, so none has to be
// installed.

import { badParam } from '../shared/errors.js';
import { isObject } from '../shared/kinds.js';

const TARGET = { target: 'draft-2020-12' };

/** Schemas of some libraries are functions. */
const mayBeSchema = (value) => isObject(value) || typeof value === 'function';

const standardOf = (schema) => (mayBeSchema(schema) && mayBeSchema(schema['~standard']) ? schema['~standard'] : null);

/** The JSON Schema of the input of a library's schema; any other value is returned as it is. */
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
  throw badParam(path, `is a schema of '${String(standard.vendor).slice(0, 40)}' without a JSON Schema: `
    + 'pass that (z.toJSONSchema(schema)), or use a version that has ~standard.jsonSchema');
}

/** Returns the tool with its parameters as JSON Schema. Other programs call them inputSchema. */
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
 * Validates a value with a library's schema: returns its `value`, or `issues`.
 * @returns {Promise<{value?: any, issues?: readonly any[]}>}
 */
export async function judged(schema, value) {
  const standard = standardOf(schema);
  if (!standard) return { value };
  const { value: output, issues } = await standard.validate(value);
  return issues ? { issues } : { value: output };
}

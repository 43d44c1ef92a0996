// SPDX-License-Identifier: MIT
// What each library's schema makes of a reply's value.
import { Type as Type0 } from '@sinclair/typebox';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import type { Model } from 'quern';
import { Type } from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';

type Trip = { city: string; nights: number } | undefined;

export async function check(model: Model) {
  const schemas = {
    zod: z.object({ city: z.string(), nights: z.int() }), valibot: toStandardJsonSchema(v.object({ city: v.string(), nights: v.number() })),
    arktype: type({ city: 'string', nights: 'number' }), typebox: Type.Object({ city: Type.String(), nights: Type.Integer() }), typebox0: Type0.Object({ city: Type0.String(), nights: Type0.Integer() }),
  };
  (await model.chat('x', { schema: schemas.zod }).result).value satisfies Trip;
  (await model.chat('x', { schema: schemas.valibot }).result).value satisfies Trip;
  (await model.chat('x', { schema: schemas.arktype }).result).value satisfies Trip;
  (await model.chat('x', { schema: schemas.typebox }).result).value satisfies Trip;
  (await model.chat('x', { schema: schemas.typebox0 }).result).value satisfies Trip;
  // @ts-expect-error
  (await model.chat('x', { schema: schemas.zod }).result).value satisfies { city: number } | undefined;
  // @ts-expect-error
  (await model.chat('x', { schema: schemas.typebox }).result).value satisfies { city: number } | undefined;
}

// SPDX-License-Identifier: MIT
// The same in each library.
import { Type as Type0 } from '@sinclair/typebox';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import { Type } from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';

export const zod = z.strictObject({ city: z.enum(['Oslo', 'Rome']), nights: z.int().min(1).max(3) });
export const valibot = toStandardJsonSchema(v.strictObject({ city: v.picklist(['Oslo', 'Rome']), nights: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(3)) }));
export const arktype = type({ '+': 'reject', city: "'Oslo' | 'Rome'", nights: '1 <= number.integer <= 3' });
export const typebox = Type.Object({ city: Type.Enum(['Oslo', 'Rome']), nights: Type.Integer({ minimum: 1, maximum: 3 }) }, { additionalProperties: false });
export const typebox0 = Type0.Object({ city: Type0.Union([Type0.Literal('Oslo'), Type0.Literal('Rome')]), nights: Type0.Integer({ minimum: 1, maximum: 3 }) }, { additionalProperties: false });

// SPDX-License-Identifier: MIT
// What the programs of this folder ask, each with its client, and how they say what came of it.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const facts = JSON.parse(readFileSync(new URL('facts.json', import.meta.url)));

/** The server's address. */
export const base = process.argv[2];

export const QUESTION = facts.question;
export const WEATHER = facts.weather;
export const CITY = z.object({ city: z.enum(['Nairobi', 'Oslo']) });

/** The tool as OpenAI's chat completions have it. */
export const tool = { type: 'function', function: WEATHER };

/** @param {{text?: string, streamed?: string, call?: {name: string, arguments: object}, value?: object, more?: string[]}} outcome more: other replies to the question */
export const tell = (outcome) => console.log(JSON.stringify(outcome));

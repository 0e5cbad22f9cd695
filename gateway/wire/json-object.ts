/** A JSON object whose members are none of a codec's business: a tool's schema, say, or what a tool is called with. */
import * as z from 'zod';
import { isRecord } from '../../core/json.ts';

/** Taken as it is, so that it costs the same however many members it has. `z.record` looks at each, and copies it. */
export const jsonObjectSchema = z
  .custom<Record<string, unknown>>(isRecord, { error: 'expected an object' })
  .meta({ type: 'object' });

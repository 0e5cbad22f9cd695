/** The settings of the request log. */
import * as z from 'zod';
import type { SettingsOf } from '../../core/config/setting.ts';

export const requestLogSettings = {
  'log.bodies': {
    schema: z.boolean().default(false),
    meaning: 'keep the first 4096 characters of prompts and answers in the request log, without what looks secret',
  },
  'log.days': {
    schema: z.int().min(1).max(90).default(7),
    meaning: 'how many days the request log goes back',
  },
} as const;
export type RequestLogSettings = SettingsOf<typeof requestLogSettings>;

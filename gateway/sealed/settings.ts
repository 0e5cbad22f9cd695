/** The settings of the sealed channel. */
import * as z from 'zod';
import type { SettingsOf } from '../../core/config/setting.ts';

export const channelSettings = {
  'channel.streamTickMs': {
    schema: z.int().min(0).max(200).default(40),
    meaning: 'how long a sealed stream collects its output before it sends a record, so that token times do not show',
  },
  'channel.crypto': {
    schema: z.enum(['node', 'noble']).default('node'),
    meaning: "what computes the sealed channel: this Node's OpenSSL, or the noble libraries, which are slower",
  },
} as const;
export type ChannelSettings = SettingsOf<typeof channelSettings>;

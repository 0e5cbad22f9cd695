/** The settings of the ways to relays. */
import * as z from 'zod';
import type { SettingsOf } from '../core/config/setting.ts';

/** As a relay is known to those who sign for it: no path, and no port that goes without saying. */
const relayOrigin = z
  .string()
  .regex(
    /^wss?:\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$/,
    'expected addresses such as "wss://relay.example.com" or "wss://relay.example.com:8443", in lower case, without a path',
  )
  .refine((value) => !/^wss:.*:443$|^ws:.*:80$/.test(value), 'leave out the port, which is the usual one');

/** A device tries them one after the other. */
const MAX_RELAYS = 4;

export const relaySettings = {
  'relay.urls': {
    schema: z.array(relayOrigin).max(MAX_RELAYS).default([]),
    environment: 'SVC_RELAY',
    meaning: 'relays through which paired devices, and nobody else, reach this machine from anywhere',
  },
} as const;
export type RelaySettings = SettingsOf<typeof relaySettings>;

/** The settings of the gateway: where it listens, who may call, and how devices are paired. */
import * as z from 'zod';
import type { SettingsOf } from '../core/config/setting.ts';
import { agentIndexSchema } from './agent-index.ts';

const origin = z.string().refine((value) => value === '*' || (URL.canParse(value) && new URL(value).origin === value), {
  error: 'expected "*" or an origin such as "https://app.example"',
});
const secureOrigin = z
  .string()
  .refine((value) => value.startsWith('https://') && URL.canParse(value) && new URL(value).origin === value, {
    error: 'expected null or an origin such as "https://app.example"',
  });
const hostname = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/, 'expected a host name in lower case, without a port');

export const serverSettings = {
  'server.port': {
    schema: z.int().min(0).max(65_535).default(1337),
    environment: 'SVC_PORT',
    meaning: 'TCP port; 0 takes any free one',
  },
  'server.expose': {
    schema: z.boolean().default(false),
    meaning: 'listen on all interfaces, so that other machines on the network can connect',
  },
  'server.hostnames': {
    schema: z.array(hostname).default([]),
    meaning: 'further names under which this machine is reached',
  },
  'server.allowedOrigins': {
    schema: z.array(origin).default(['*']),
    meaning: 'web pages that may call: origins, or "*" for inference from any page',
  },
} as const;
export type ServerSettings = SettingsOf<typeof serverSettings>;

export const wireSettings = {
  'ollama.announceTools': {
    schema: z.boolean().default(false),
    isLive: true,
    meaning: "/api/show says that models can use tools, for clients of Ollama's that look for it",
  },
} as const;
export type WireSettings = SettingsOf<typeof wireSettings>;

export const accessSettings = {
  'access.requireKeyOnLoopback': {
    schema: z.boolean().default(false),
    meaning: 'programs on this machine need an access key, too',
  },
  'access.requestsPerMinute': {
    schema: z.int().min(1).max(1_000_000).default(600),
    meaning: 'requests that each access key may make in a minute',
  },
  'access.requestsAtOnce': {
    schema: z.int().min(1).max(1000).default(16),
    meaning: 'requests that each access key may have under way',
  },
} as const;
export type AccessSettings = SettingsOf<typeof accessSettings>;

export const pairingSettings = {
  'pairing.appOrigin': {
    schema: secureOrigin.nullable().default(null),
    meaning: 'where the app for phones is served, for the link in an invite; null: no link',
  },
  'pairing.discovery': {
    schema: z.boolean().default(true),
    meaning: 'devices in the same network may ask to be paired by a code that is shown here',
  },
  'pairing.advertise': {
    schema: z.boolean().default(true),
    meaning: 'while the service is exposed, say so in the network (mDNS), so that devices find it',
  },
  'pairing.defaultAgent': {
    schema: agentIndexSchema.nullable().default(null),
    meaning: 'the agent, by its number, that a device paired by a code is good for; null: every one',
  },
} as const;
export type PairingSettings = SettingsOf<typeof pairingSettings>;

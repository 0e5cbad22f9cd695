/** Every command, each read from its file only when it is asked for: the start of the service waits for no other. */
import type { Command } from './command.ts';

const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['serve', async () => (await import('./serve.ts')).serve],
  ['status', async () => (await import('./status.ts')).status],
  ['stop', async () => (await import('./stop.ts')).stop],
  ['models', async () => (await import('./models.ts')).models],
  ['logs', async () => (await import('./logs.ts')).logs],
  ['invite', async () => (await import('./invite.ts')).invite],
  ['devices', async () => (await import('./devices.ts')).devices],
  ['approvals', async () => (await import('./approvals.ts')).approvals],
  ['approve', async () => (await import('./decide.ts')).approve],
  ['deny', async () => (await import('./decide.ts')).deny],
  ['settings', async () => (await import('./settings.ts')).settings],
  ['identity', async () => (await import('./identity.ts')).identity],
  ['keys', async () => (await import('./keys.ts')).keys],
  ['pair', async () => (await import('./pair.ts')).pair],
  ['connect', async () => (await import('./connect.ts')).connect],
  ['gateways', async () => (await import('./gateways.ts')).gateways],
  ['access', async () => (await import('./access.ts')).access],
  ['doctor', async () => (await import('./doctor.ts')).doctor],
  ['audit', async () => (await import('./audit.ts')).audit],
  ['relay', async () => (await import('./relay.ts')).relay],
]);

export async function findCommand(name: string): Promise<Command | undefined> {
  return COMMANDS.get(name)?.();
}

/** In the order of the help. */
export function allCommands(): Promise<readonly Command[]> {
  return Promise.all([...COMMANDS.values()].map((read) => read()));
}

/** Every command, each read from its file only when it is asked for: the start of the service waits for no other. */
import type { Command } from './command.ts';

const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['serve', async () => (await import('./commands/serve.ts')).serve],
  ['status', async () => (await import('./commands/status.ts')).status],
  ['stop', async () => (await import('./commands/stop.ts')).stop],
  ['chat', async () => (await import('./commands/chat.ts')).chat],
  ['run', async () => (await import('./commands/run.ts')).run],
  ['models', async () => (await import('./commands/models.ts')).models],
  ['logs', async () => (await import('./commands/logs.ts')).logs],
  ['invite', async () => (await import('./commands/invite.ts')).invite],
  ['devices', async () => (await import('./commands/devices.ts')).devices],
  ['approvals', async () => (await import('./commands/approvals.ts')).approvals],
  ['approve', async () => (await import('./commands/decide.ts')).approve],
  ['deny', async () => (await import('./commands/decide.ts')).deny],
  ['settings', async () => (await import('./commands/settings.ts')).settings],
  ['identity', async () => (await import('./commands/identity.ts')).identity],
  ['keys', async () => (await import('./commands/keys.ts')).keys],
  ['pair', async () => (await import('./commands/pair.ts')).pair],
  ['connect', async () => (await import('./commands/connect.ts')).connect],
  ['gateways', async () => (await import('./commands/gateways.ts')).gateways],
  ['access', async () => (await import('./commands/access.ts')).access],
  ['doctor', async () => (await import('./commands/doctor.ts')).doctor],
  ['audit', async () => (await import('./commands/audit.ts')).audit],
  ['relay', async () => (await import('./commands/relay.ts')).relay],
  ['completion', async () => (await import('./commands/completion.ts')).completion(allCommands)],
]);

/** In the order of the help. */
export const commandNames: readonly string[] = [...COMMANDS.keys()];

export async function findCommand(name: string): Promise<Command | undefined> {
  return COMMANDS.get(name)?.();
}

/** In the order of the help. */
export function allCommands(): Promise<readonly Command[]> {
  return Promise.all([...COMMANDS.values()].map((read) => read()));
}

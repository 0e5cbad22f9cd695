/** Access keys for tests: one that counts for each kind, and one for each reason why a key does not. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCli } from './server.ts';
import { until } from './wait.ts';

export interface MadeKey {
  readonly id: string;
  readonly token: string;
  readonly scope: string;
}

export async function createKey(home: string, ...args: string[]): Promise<MadeKey> {
  const { code, stdout, stderr } = await runCli(['keys', 'create', '--json', ...args], { SVC_HOME: home });
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as MadeKey;
}

/** The last digit but the recovery byte's, turned over: still a signature, and of somebody else. */
export function forge({ token }: MadeKey): string {
  const at = token.length - 5;
  return `${token.slice(0, at)}${token[at] === '0' ? '1' : '0'}${token.slice(at + 1)}`;
}

export async function setSettings(home: string, settings: object): Promise<void> {
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
}

/** Waits until the key itself says that it has expired. */
export async function expired(home: string, key: MadeKey): Promise<MadeKey> {
  await until(async () => {
    const { stdout } = await runCli(['keys', 'inspect', '-', '--json'], { SVC_HOME: home }, key.token);
    return (JSON.parse(stdout) as { refusal: string | null }).refusal === 'expired';
  });
  return key;
}

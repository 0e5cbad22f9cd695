/** How the documentation sets a client up: the files that a section has its reader write, and what they then type. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface DocumentedSetup {
  /** Their contents, by their path below the home folder. */
  readonly files: Readonly<Record<string, string>>;
  /** Shell commands, of which the last starts the client. */
  readonly commands: string;
}

const clients = new URL('../../docs/clients.md', import.meta.url);

/** @param heading of a section of `docs/clients.md` */
export async function documentedSetup(heading: string): Promise<DocumentedSetup> {
  const text = await readFile(clients, 'utf8');
  const [, section] = text.split(new RegExp(`^### ${heading}$`, 'm'));
  if (section === undefined) throw new Error(`docs/clients.md has no section ${heading}.`);
  const [own = ''] = section.split(/^##/m);
  const files = [...own.matchAll(/^In `~\/([^`]+)`:\n\n```\w+\n(.*?)^```$/gms)].map(([, path, content]) => [
    path,
    content,
  ]);
  const commands = /^```sh\n(.*?)\n```$/ms.exec(own)?.[1];
  if (commands === undefined) throw new Error(`${heading} has no commands in docs/clients.md.`);
  return { files: Object.fromEntries(files) as Record<string, string>, commands };
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

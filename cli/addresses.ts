/** The addresses under which other machines can reach a server that listens on all interfaces. */
import { networkInterfaces } from 'node:os';

type Interfaces = ReturnType<typeof networkInterfaces>;

/** As URLs. Link-local IPv6 is left out: its addresses need the name of the caller's own interface. */
export function reachableUrls(port: number, interfaces: Interfaces = networkInterfaces()): readonly string[] {
  return Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.toLowerCase().startsWith('fe80:'))
    .map(({ address, family }) => `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`);
}

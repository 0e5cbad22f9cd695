/** The addresses and names under which this machine is reached. */
import { hostname, networkInterfaces } from 'node:os';

type Interfaces = ReturnType<typeof networkInterfaces>;

let known: Interfaces = {};

/** The interfaces of this machine: as they were the last time, where the system has no file left to ask it with. */
export function ownInterfaces(): Interfaces {
  try {
    known = networkInterfaces();
  } catch {
    // It is asked again before anything depends on a change.
  }
  return known;
}

/** Networks inside this machine, of containers and virtual machines. */
const INNER_NETWORK = /^(?:docker|br-|veth|virbr|vboxnet|vmnet|lxc|podman|cni)/;

/** What the service listens on, where the machine has it: `localhost` is an IPv4 and an IPv6 address. */
export function listenHosts(isExposed: boolean): readonly [string, string] {
  return isExposed ? ['0.0.0.0', '::'] : ['127.0.0.1', '::1'];
}

/** The address that a system error is about; `localhost` where it names none. */
export function addressOf(error: unknown): string {
  return error instanceof Error && 'address' in error ? String(error.address) : 'localhost';
}

interface Reachable {
  readonly port: number;
  /** What is listened on. Nothing else is told to anybody: another program could have it. */
  readonly hosts: readonly string[];
  readonly interfaces?: Interfaces;
}

/**
 * As URLs, the likeliest first. Link-local IPv6 is left out: its addresses need the name of the caller's own interface.
 */
export function reachableUrls({ port, hosts, interfaces = ownInterfaces() }: Reachable): readonly string[] {
  return Object.entries(interfaces)
    .flatMap(([name, addresses = []]) => addresses.map((one) => ({ ...one, isInner: INNER_NETWORK.test(name) })))
    .filter(({ internal, address }) => !internal && !address.toLowerCase().startsWith('fe80:'))
    .filter(({ family }) => hosts.includes(family === 'IPv6' ? '::' : '0.0.0.0'))
    .toSorted((one, other) => rankOf(one) - rankOf(other))
    .map(({ address, family }) => `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`);
}

function rankOf({ isInner, family }: { readonly isInner: boolean; readonly family: string }): number {
  return (isInner ? 2 : 0) + (family === 'IPv6' ? 1 : 0);
}

/** Its host name, with and without domain, and its addresses, lower case: what others may call this machine by. */
export function machineNames(): readonly string[] {
  const name = hostname().toLowerCase();
  const addresses = Object.values(ownInterfaces()).flatMap((found = []) => found.map(({ address }) => address));
  return [name, name.replace(/\..*/, ''), ...addresses];
}

/**
 * Machines with cables between them: network namespaces joined by veth pairs, made for one test and taken down after it.
 * Nothing outside them can be reached.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ip = (...args: readonly string[]) => run('ip', args);

export interface Machine {
  readonly address: string;
  /** Its end of the cable. */
  readonly device: string;
  /** Put before a command, it runs the command on this machine. */
  readonly within: readonly string[];
}

export interface TestNetwork {
  readonly home: Machine;
  readonly guest: Machine;
  remove(): Promise<void>;
}

/** A machine without a cable: nothing can be reached from it but itself. */
export async function createLoneMachine(): Promise<Pick<Machine, 'within'> & { remove(): Promise<void> }> {
  const machine = await createMachine('l');
  return { within: machine.within, remove: () => removeAll([machine]) };
}

/** Two machines with a cable between them. */
export async function createNetwork(): Promise<TestNetwork> {
  const [home, guest] = [await createMachine('h'), await createMachine('g')];
  await connect({ ...home, address: '10.77.0.1' }, { ...guest, address: '10.77.0.2' });
  return {
    home: { ...home, address: '10.77.0.1' },
    guest: { ...guest, address: '10.77.0.2' },
    remove: () => removeAll([home, guest]),
  };
}

export interface RelayedNetwork extends TestNetwork {
  /** Reached by the two others at this address, and by nobody else at any; it passes no packets on. */
  readonly relay: Omit<Machine, 'device'> & {
    /** Its ends of the cables to the others. */
    readonly devices: readonly [string, string];
  };
}

/** A machine in the middle, which alone the two others can reach. */
export async function createRelayedNetwork(): Promise<RelayedNetwork> {
  const [home, guest] = [await createMachine('h'), await createMachine('g')];
  const relay = await createMachine('r');
  const address = '10.77.9.9';
  const devices = [relay.device, `${relay.device}2`] as const;
  await ip('-n', relay.namespace, 'addr', 'add', `${address}/32`, 'dev', 'lo');
  await connect({ ...home, address: '10.77.1.1' }, { ...relay, device: devices[0], address: '10.77.1.2' });
  await connect({ ...guest, address: '10.77.2.1' }, { ...relay, device: devices[1], address: '10.77.2.2' });
  // To everywhere, so that it is the relay that stands between the two, and not the want of a way.
  await run('ip', ['netns', 'exec', relay.namespace, 'sh', '-c', 'echo 0 > /proc/sys/net/ipv4/ip_forward']);
  await ip('-n', home.namespace, 'route', 'add', 'default', 'via', '10.77.1.2');
  await ip('-n', guest.namespace, 'route', 'add', 'default', 'via', '10.77.2.2');
  return {
    home: { ...home, address: '10.77.1.1' },
    guest: { ...guest, address: '10.77.2.1' },
    relay: { address, devices, within: relay.within },
    remove: () => removeAll([home, guest, relay]),
  };
}

interface Namespace {
  readonly namespace: string;
  readonly device: string;
  readonly within: readonly string[];
}

async function createMachine(letter: string): Promise<Namespace> {
  const namespace = `pt${randomBytes(3).toString('hex')}${letter}`;
  await ip('netns', 'add', namespace);
  await ip('-n', namespace, 'link', 'set', 'lo', 'up');
  return { namespace, device: namespace, within: ['ip', 'netns', 'exec', namespace] };
}

type End = Namespace & Pick<Machine, 'address'>;

async function connect(one: End, other: End): Promise<void> {
  const ends = [one, other].map(({ device, namespace }) => [device, 'netns', namespace]);
  await ip('link', 'add', ...ends[0]!, 'type', 'veth', 'peer', 'name', ...ends[1]!);
  for (const { namespace, device, address } of [one, other]) {
    await ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', device);
    await ip('-n', namespace, 'link', 'set', device, 'up');
  }
  for (const { namespace, device } of [one, other]) {
    // There is no other way out that multicast could take.
    await ip('-n', namespace, 'route', 'replace', '224.0.0.0/4', 'dev', device);
  }
}

async function removeAll(machines: readonly Namespace[]): Promise<void> {
  for (const { namespace } of machines) await ip('netns', 'del', namespace);
}

interface FetchResult {
  readonly status: number;
  readonly body: string;
  /** The system's error code, where there was no answer at all. */
  readonly error?: string;
}

/** A request made on one of the machines. */
export async function fetchOn(machine: Machine, url: string, init: RequestInit = {}): Promise<FetchResult> {
  const program = `
    const [url, init] = JSON.parse(process.argv[1]);
    fetch(url, init).then(
      async (response) => console.log(JSON.stringify({ status: response.status, body: await response.text() })),
      (error) => console.log(JSON.stringify({ status: 0, body: '', error: error.cause?.code ?? error.message })),
    );`;
  const [command, ...args] = [...machine.within, process.execPath, '-e', program, JSON.stringify([url, init])];
  const { stdout } = await run(command, args);
  return JSON.parse(stdout) as FetchResult;
}

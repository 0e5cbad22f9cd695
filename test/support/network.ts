/**
 * Two machines with a cable between them: network namespaces joined by a veth pair, made for one test and taken down
 * after it. Nothing outside them can be reached.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);

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

export async function createNetwork(): Promise<TestNetwork> {
  const id = randomBytes(3).toString('hex');
  const machine = (name: string, last: number) => ({
    namespace: `pt${id}${name}`,
    device: `pt${id}${name}`,
    address: `10.77.0.${last}`,
  });
  const [home, guest] = [machine('h', 1), machine('g', 2)];
  const ip = (...args: string[]) => run('ip', args);
  for (const { namespace } of [home, guest]) await ip('netns', 'add', namespace);
  await ip(
    'link',
    'add',
    home.device,
    'netns',
    home.namespace,
    'type',
    'veth',
    'peer',
    'name',
    guest.device,
    'netns',
    guest.namespace,
  );
  for (const { namespace, device, address } of [home, guest]) {
    await ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', device);
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
    await ip('-n', namespace, 'link', 'set', device, 'up');
    // There is no other way out that multicast could take.
    await ip('-n', namespace, 'route', 'add', '224.0.0.0/4', 'dev', device);
  }
  const asMachine = ({ namespace, device, address }: typeof home): Machine => ({
    address,
    device,
    within: ['ip', 'netns', 'exec', namespace],
  });
  return {
    home: asMachine(home),
    guest: asMachine(guest),
    remove: async () => {
      for (const { namespace } of [home, guest]) await ip('netns', 'del', namespace);
    },
  };
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

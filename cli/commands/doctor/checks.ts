/** Every check of `postern doctor`, in the order in which they are shown. */
import type { Check } from './check.ts';
import { clock } from './clock.ts';
import { disk } from './disk.ts';
import { engine } from './engine.ts';
import { homePermissions } from './home-permissions.ts';
import { memory } from './memory.ts';
import { node } from './node.ts';
import { peerProcesses } from './peer-processes.ts';
import { port } from './port.ts';
import { processor } from './processor.ts';
import { secrets } from './secrets.ts';
import { user } from './user.ts';
import { webPages } from './web-pages.ts';

const machine: readonly Check[] = [node, processor, engine, memory, disk, clock];
const service: readonly Check[] = [homePermissions, secrets, user, peerProcesses, port, webPages];

export const checks: readonly Check[] = [...machine, ...service];

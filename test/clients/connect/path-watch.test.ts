import { expect, test } from 'vitest';
import { watchPath } from '../../../clients/connect/path-watch.ts';

test('only a change is told, and the own network is no news at first', () => {
  const said: string[] = [];
  const tell = watchPath((words) => said.push(words));
  const [near, alsoNear] = ['http://a', 'http://b'].map((url) => ({ kind: 'lan', url }) as const);
  const [far, farther] = ['wss://r', 'wss://s'].map((url) => ({ kind: 'relay', url }) as const);
  for (const path of [undefined, near, alsoNear, far, far, near, alsoNear, far, farther, undefined]) tell(path);
  expect(said).toEqual([
    'Through the relay wss://r now.',
    'In the same network as home now.',
    'Through the relay wss://r now.',
    'Through the relay wss://s now.',
  ]);
});

/** Whose turn it is to connect, where many come at once. */
// First, so that what follows is counted.
import { countWork } from '../support/work.ts';
import { expect, test } from 'vitest';
import { Arrivals } from '../../relay/arrivals.ts';
import { until } from '../support/wait.ts';

/** Whoever comes is written down as `admitted name` or `refused name`, the address being all before the dot. */
function arrivalsWith(limits: { inAll: number; perAddress: number }) {
  const arrivals = new Arrivals(limits);
  const said: string[] = [];
  const come = (name: string): void =>
    arrivals.add({
      address: name.split('.')[0] ?? '',
      admit: () => void said.push(`admitted ${name}`),
      refuse: () => void said.push(`refused ${name}`),
    });
  return { come, said };
}

test('each address has its turn, and of one address the oldest comes first', async () => {
  const { come, said } = arrivalsWith({ inAll: 10, perAddress: 0 });
  for (const name of ['a.1', 'a.2', 'a.3', 'b.1', 'a.4', 'b.2']) come(name);
  await until(() => said.length === 6);
  expect(said).toEqual(['a.1', 'b.1', 'a.2', 'b.2', 'a.3', 'a.4'].map((name) => `admitted ${name}`));
});

test('where too many wait, the oldest of the address with most gives way; of an address that is full, its own', () => {
  const { come, said } = arrivalsWith({ inAll: 4, perAddress: 3 });
  for (const name of ['a.1', 'a.2', 'a.3', 'a.4', 'b.1', 'c.1']) come(name);
  expect(said).toEqual(['refused a.1', 'refused a.2']);
});

test('where each of too many addresses has one, the first gives way', () => {
  const { come, said } = arrivalsWith({ inAll: 2, perAddress: 0 });
  for (const name of ['a.1', 'b.1', 'c.1']) come(name);
  expect(said).toEqual(['refused a.1']);
});

test('that very many wait makes it no more work for the next one', async () => {
  const workAmong = async (many: number): Promise<number> => {
    const { come, said } = arrivalsWith({ inAll: many, perAddress: 0 });
    for (let at = 0; at < many; at += 1) come(`${at % 7}.${at}`);
    const work = await countWork('relay/', () => {
      for (let at = 0; at < 50; at += 1) come(`1.new ${at}`);
    });
    expect(said.filter((one) => one.startsWith('refused'))).toHaveLength(50);
    return work;
  };
  expect(await workAmong(10_000)).toBeLessThan(2 * (await workAmong(100)));
});

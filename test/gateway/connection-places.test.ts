/** Who gives way to whom where all places are taken: 16 of them, 8 for other machines, 4 for one address. */
import { expect, test } from 'vitest';
import { ConnectionPlaces } from '../../gateway/connection-places.ts';

const HERE = '127.0.0.1';

function placesOf16() {
  const places = new ConnectionPlaces(16);
  const cut: string[] = [];
  const take = (address: string, name: string, waits = true): (() => void) => {
    const leave = places.take(address, {
      waitsForClient: () => waits,
      cut: () => {
        leave();
        cut.push(name);
      },
    });
    return leave;
  };
  return { take, cut };
}

test('the oldest of the same address that waits for its client', () => {
  const { take, cut } = placesOf16();
  take('10.0.0.1', 'answered', false);
  for (const name of ['a', 'b', 'c', 'd', 'e']) take('10.0.0.1', name);
  expect(cut).toEqual(['a', 'b']);
});

test('an address all of whose requests are being answered has to wait, and no other', () => {
  const { take, cut } = placesOf16();
  const [leave] = Array.from({ length: 4 }, (_, at) => take('10.0.0.1', String(at), false));
  expect(() => take('10.0.0.1', 'one more')).toThrow('of this address');
  take('10.0.0.2', 'other');
  leave!();
  take('10.0.0.1', 'one more');
  expect(cut).toEqual([]);
});

test('where other machines have all of theirs, the oldest of the address that has most', () => {
  const { take, cut } = placesOf16();
  for (const [address, count] of [
    ['10.0.0.1', 2],
    ['10.0.0.2', 4],
    ['10.0.0.3', 2],
  ] as const)
    for (let at = 0; at < count; at++) take(address, `${address} ${at}`);
  take('10.0.0.4', 'new');
  expect(cut).toEqual(['10.0.0.2 0']);
});

test('this machine has what others can’t take, and gives way in its turn', () => {
  const { take, cut } = placesOf16();
  for (let at = 0; at < 16; at++) take(HERE, `here ${at}`);
  take('10.0.0.1', 'new');
  take(HERE, 'newer');
  expect(cut).toEqual(['here 0', 'here 1']);
});

test('an address in a /64 of IPv6 is one with all others there', () => {
  const { take, cut } = placesOf16();
  for (let at = 1; at <= 5; at++) take(`2001:db8::${at}`, String(at));
  expect(cut).toEqual(['1']);
});

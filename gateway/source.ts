/** The client that an address stands for, where requests are counted by where they come from. */
import { isIPv6 } from 'node:net';

/** The groups of an IPv6 address that name a network: whoever has one address of it can take any other (RFC 6177). */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/** An IPv4 address as it is, also when it is mapped into IPv6; of an IPv6 address its /64. */
export function sourceOf(address: string | undefined): string {
  if (address === undefined) return '';
  const [plain = ''] = address.toLowerCase().split('%');
  const mapped = /^::ffff:([\d.]+)$/.exec(plain)?.[1];
  if (mapped !== undefined || !isIPv6(plain)) return mapped ?? plain;
  return `${groupsOf(plain).slice(0, NETWORK_GROUPS).join(':')}::/64`;
}

/** The first groups are asked for, so an IPv4 address at the end may count as one. */
function groupsOf(address: string): readonly string[] {
  const [head = '', tail] = address.split('::');
  const before = head.split(':').filter((group) => group !== '');
  const after = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = tail === undefined ? 0 : Math.max(0, GROUPS - before.length - after.length);
  return [...before, ...Array<string>(zeros).fill('0'), ...after].map((group) => group.replace(/^0+(?=.)/, ''));
}

/** Whom an address stands for, where places are shared. An IPv6 network is one: whoever has one address has them all. */

/** An IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:([0-9.]+)$/iu.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = address.split('::', 2);
  const groups = head.split(':');
  const tailGroups = tail === undefined || tail === '' ? [] : tail.split(':');
  if (tail !== undefined) while (groups.length + tailGroups.length < 8) groups.push('0');
  return [...groups, ...tailGroups].slice(0, 4).join(':');
}

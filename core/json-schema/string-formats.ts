/**
 * The formats of strings that are held to, as regular expressions: each takes only what its specification allows, though
 * not all of it (a leap second, a quoted local part, an address in an email are never needed).
 */
const YEAR = String.raw`[0-9]{4}`;
/** Years with a 29th of February. */
const LEAP_YEAR = String.raw`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`;
const MONTH_DAY = String.raw`(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)`;
/** RFC 3339 §5.6. */
const DATE = `(?:${YEAR}-${MONTH_DAY}|${LEAP_YEAR}-02-29)`;
const TIME = String.raw`(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`;
/** RFC 1123 §2.1. */
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
/** RFC 5321 §4.1.2: a dot-string, of the 64 characters that §4.5.3.1.1 allows. */
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,30}";
const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `(?:${OCTET}\\.){3}${OCTET}`;
const GROUP = '[0-9A-Fa-f]{1,4}';
/** RFC 4291 §2.2, without the form that ends in an IPv4 address. */
const IPV6 = [
  `(?:${GROUP}:){7}${GROUP}`,
  ...Array.from({ length: 7 }, (_, before) => {
    const first = before === 0 ? '' : `${GROUP}(?::${GROUP}){${before - 1}}`;
    const after = 6 - before;
    return `${first}::${after < 0 ? '' : `(?:${GROUP}(?::${GROUP}){0,${after}})?`}`;
  }),
].join('|');
/** RFC 3986 §3. */
const UNRESERVED = "A-Za-z0-9._~!$&'()*+,;=\\-";
const ENCODED = '%[0-9A-Fa-f]{2}';
const PCHARS = `(?:[${UNRESERVED}:@]|${ENCODED})*`;
const AUTHORITY = `(?:(?:[${UNRESERVED}:]|${ENCODED})*@)?(?:[${UNRESERVED}]|${ENCODED})+(?::[0-9]{1,4})?`;
const PATH = `(?:/${PCHARS})*`;
const TAIL = `(?:\\?(?:[${UNRESERVED}:@/?]|${ENCODED})*)?(?:#(?:[${UNRESERVED}:@/?]|${ENCODED})*)?`;

const EXPRESSIONS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  'date-time': `${DATE}T${TIME}`,
  duration:
    'P(?:[0-9]{1,6}W|[0-9]{1,6}D|[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|T(?:[0-9]{1,6}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,6}M(?:[0-9]{1,4}S)?|[0-9]{1,6}S))',
  email: `${ATOM}(?:\\.${ATOM})?@${LABEL}(?:\\.${LABEL}){1,2}`,
  hostname: `${LABEL}(?:\\.${LABEL}){0,2}`,
  uuid: '[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}',
  ipv4: IPV4,
  ipv6: IPV6,
  uri: `[A-Za-z][A-Za-z0-9+.-]*://${AUTHORITY}${PATH}${TAIL}`,
};

/** @returns its expression, anchored; undefined for a format that is not held to */
export function formatExpression(format: string): string | undefined {
  const expression = Object.hasOwn(EXPRESSIONS, format) ? EXPRESSIONS[format] : undefined;
  return expression === undefined ? undefined : `^(?:${expression})$`;
}

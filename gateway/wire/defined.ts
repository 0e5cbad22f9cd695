/** For JSON's two ways of not saying something. */

type Defined<Fields> = { [Name in keyof Fields]?: NonNullable<Fields[Name]> };

/** Leaves out what is null or undefined: in JSON both mean "not said". */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const said: Defined<Fields> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== null && value !== undefined) said[name] = value;
  }
  return said;
}

/** What a room declares of each of its settings: a name has the form `room.what`. */
import type * as z from 'zod';

export interface SettingDeclaration<Schema extends z.ZodType = z.ZodType> {
  /** With its default. */
  readonly schema: Schema;
  /** The environment variable that goes before the file. */
  readonly environment?: string;
  readonly meaning: string;
  /** A running service follows the file; what is not live is taken on at its start. */
  readonly isLive?: true;
  /** A flag or variable may name it from where the program was started. */
  readonly isPath?: true;
}

export type SettingDeclarations = Readonly<Record<string, SettingDeclaration>>;

/** The values of the settings that a room has declared; all that it sees of the owner's. */
export type SettingsOf<Declarations extends SettingDeclarations> = {
  readonly [Name in keyof Declarations]: z.output<Declarations[Name]['schema']>;
};

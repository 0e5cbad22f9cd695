/** Strings at which an answer ends, as every style takes them. Pure. */
import * as z from 'zod';

/** OpenAI allows 4, other servers more. */
const MAX_STOP_SEQUENCES = 16;

/** The engine looks for each of them at each token. Longer ones than a paragraph mark nothing. */
const MAX_STOP_LENGTH = 1024;

const stopSequenceSchema = z.string().max(MAX_STOP_LENGTH);

export const stopSequencesSchema = z.array(stopSequenceSchema).max(MAX_STOP_SEQUENCES);

/** One, or a list of them. */
export const stopSchema = z.union([stopSequenceSchema, stopSequencesSchema]);

/** Forms send an empty field for none; a sequence of no length would match everywhere. */
export function stopSequences(stop: z.output<typeof stopSchema> | null | undefined): string[] | undefined {
  const said = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((sequence) => sequence !== '');
  return said.length === 0 ? undefined : said;
}

/** Strings at which an answer ends, as every style takes them. Pure. */
import * as z from 'zod';

/** OpenAI allows 4, other servers more. */
const MAX_STOP_SEQUENCES = 16;

/** The engine looks for each of them at each token. Longer ones than a paragraph mark nothing. */
const MAX_STOP_LENGTH = 1024;

/** One of no length would match everywhere. */
export const stopSequenceSchema = z.string().min(1).max(MAX_STOP_LENGTH);

export const stopSequencesSchema = z.array(stopSequenceSchema).max(MAX_STOP_SEQUENCES);

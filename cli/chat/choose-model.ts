/** Which model is meant where a person names one, or none. */
import * as z from 'zod';
import { BUILT_IN_MODEL_ID } from '../../core/inference/local/installed-models.ts';
import { CommandError } from '../command.ts';
import type { LiveServer } from '../live-server.ts';

const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) });
const residentSchema = z.object({ resident_models: z.array(z.string()).default([]) });

/**
 * The one that is named; else the one that is loaded, the only one there is, or the built-in one where there is no
 * other.
 * @throws {CommandError} for one that there is not, and where there are several to choose from
 */
export async function chooseModel(server: LiveServer, wanted: string | undefined): Promise<string> {
  return wanted === undefined ? anyModel(server) : requireModel(server, wanted);
}

export async function modelIds(server: LiveServer): Promise<readonly string[]> {
  return listSchema.parse(await server.askInference('models')).data.map(({ id }) => id);
}

async function requireModel(server: LiveServer, wanted: string): Promise<string> {
  const path = wanted.split('/').map(encodeURIComponent).join('/');
  return z.object({ id: z.string() }).parse(await server.askInference(`models/${path}`)).id;
}

async function anyModel(server: LiveServer): Promise<string> {
  const [loaded] = residentSchema.parse(await server.ask('GET', 'status')).resident_models;
  if (loaded !== undefined) return loaded;
  const [first, ...others] = (await modelIds(server)).filter((id) => id !== BUILT_IN_MODEL_ID);
  if (first === undefined) return BUILT_IN_MODEL_ID;
  if (others.length === 0) return first;
  throw new CommandError(`which model? Name one:\n${[first, ...others].map((id) => `  ${id}`).join('\n')}`);
}

/** Models by the name under which Ollama's clients pull them: `hf.co/org/repository`, with or without a quantization. */
import { relative, sep } from 'node:path';
import { chooseModel, modelCandidates } from '../../download/model-choice.ts';
import type { LocalModel } from '../catalog.ts';
import { modelFiles } from './model-files.ts';

const HUB_NAME = /^(?:hf\.co|huggingface\.co)\/([^/:]+\/[^/:]+)(?::(.+))?$/i;

/** What of a repository is in the models folder, chosen as where it is fetched. Undefined where that is not one model. */
export function findPulled(models: Iterable<LocalModel>, name: string, modelsDir: string): LocalModel | undefined {
  const [, repository, tag = 'latest'] = HUB_NAME.exec(name) ?? [];
  if (repository === undefined) return undefined;
  const folder = `${repository.toLowerCase()}/`;
  const byPath = new Map<string, LocalModel>();
  for (const model of models) {
    const path = relative(modelsDir, model.path).replaceAll(sep, '/');
    if (path.toLowerCase().startsWith(folder)) byPath.set(path.slice(folder.length), model);
  }
  const files = [...byPath].flatMap(([path, { sizeBytes }]) =>
    modelFiles(path).map((part) => ({ path: part, sizeBytes })),
  );
  const [chosen, ...more] = chooseModel(modelCandidates(files), tag === 'latest' ? undefined : tag);
  const first = chosen?.files[0]?.path;
  return first === undefined || more.length > 0 ? undefined : byPath.get(first);
}

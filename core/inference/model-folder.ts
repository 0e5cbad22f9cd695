/** What may be done to the models there are, which are files somewhere. */
import type { LocalModel } from './catalog.ts';

export interface ModelFolder {
  /** @throws {ServiceError} `unsupported` for a model that is not ours to remove, with the way to do it */
  remove(model: LocalModel): Promise<void>;
  /**
   * Gives a model a second name, which stays when the first one goes. Takes no room but where the model is on another disk.
   * @param name one that `isModelName` lets pass, and that no model has
   * @throws {ServiceError} `unsupported` for a model that would be there once all the same
   */
  copy(model: LocalModel, name: string): Promise<void>;
}

/** What a model may be called whose file is named for it: none that would be taken for a part of another model. */
export function isModelName(name: string): boolean {
  return /^[a-z\d][\w.-]{0,127}$/i.test(name) && !/mmproj|-\d{5}-of-\d{5}$/i.test(name);
}

/** What may go wrong with a model. */
export type InferenceErrorCode =
  /** No installed model has the requested id. */
  | 'model_not_found'
  /** The prompt alone has more tokens than the model's context window. */
  | 'prompt_too_long'
  /** The model can't be loaded or run in the memory there is. */
  | 'insufficient_resources'
  /** The engine died or misbehaved; the same request may succeed when repeated. */
  | 'engine_failed';

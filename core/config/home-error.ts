/** `SVC_HOME` can't be used as it is. The message is for the owner, and says what to do. */
export class HomeError extends Error {
  override readonly name = 'HomeError';
}

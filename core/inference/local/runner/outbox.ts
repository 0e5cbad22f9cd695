/**
 * Messages to another process, put together: each that is sent costs both sides more than all that is in it, a system
 * call and a wake-up.
 */
export interface Outbox<Message> {
  /** To go out with whatever else is posted until the next turn. */
  post(message: Message): void;
  /** Sends what was posted, now. */
  flush(): void;
}

/**
 * @param send is given the messages in the order in which they were posted, one at least
 * @param nextTurn calls back once, in a later turn of the event loop
 */
export function createOutbox<Message>(
  send: (messages: readonly Message[]) => void,
  nextTurn: (run: () => void) => unknown = setImmediate,
): Outbox<Message> {
  let posted: Message[] = [];
  const flush = (): void => {
    const messages = posted;
    posted = [];
    if (messages.length > 0) send(messages);
  };
  return {
    post(message) {
      posted.push(message);
      if (posted.length === 1) nextTurn(flush);
    },
    flush,
  };
}

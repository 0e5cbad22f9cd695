/** A loopback server on a second laptop that carries every route home through the sealed channel. */
export {};

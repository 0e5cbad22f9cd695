/** What the owner has to know where the system does not tell whose process a connection comes from. */
export const UNTOLD_PEERS =
  'this system does not tell whose process a connection comes from: every program here counts as you';

export const UNTOLD_PEERS_REMEDY =
  'To ask all of them for a key: postern settings set access.requireKeyOnLoopback true';

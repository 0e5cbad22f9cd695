/** The settings of the identity. */
import * as z from 'zod';

export const identitySettings = {
  'identity.store': {
    schema: z.enum(['auto', 'keyring', 'vault']).default('auto'),
    environment: 'SVC_IDENTITY_STORE',
    meaning:
      "where a new identity's secrets go: the system's credential store (keyring), a sealed file (vault), or auto",
  },
} as const;

/** The part of noise-c.wasm that the interop test uses; the package brings no types. */
declare module 'noise-c.wasm' {
  interface NoiseC {
    readonly constants: { readonly NOISE_ROLE_INITIATOR: number; readonly NOISE_ROLE_RESPONDER: number };
    HandshakeState: new (protocolName: string, role: number) => NoiseCHandshake;
  }
  interface NoiseCHandshake {
    Initialize(prologue: Uint8Array, s: Uint8Array, rs: Uint8Array | null, psk: null): void;
    WriteMessage(payload: Uint8Array): Uint8Array;
    ReadMessage(message: Uint8Array, payloadNeeded: true): Uint8Array;
    GetHandshakeHash(): Uint8Array;
    GetRemotePublicKey(): Uint8Array;
    /** What this side sends with, and what it receives with. */
    Split(): [NoiseCCipher, NoiseCCipher];
  }
  interface NoiseCCipher {
    EncryptWithAd(ad: Uint8Array, plaintext: Uint8Array): Uint8Array;
    DecryptWithAd(ad: Uint8Array, ciphertext: Uint8Array): Uint8Array;
    free(): void;
  }
  export default function createNoise(options: object, onReady: (noise: NoiseC) => void): void;
}

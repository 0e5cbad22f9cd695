/**
 * How much structure a JSON text may have, whatever its bytes are: what a schema, a codec or a copy does with it costs
 * time for each value, not for each byte. Each limit leaves honest work room.
 */
export interface JsonLimits {
  /** Values and keys, all together. */
  readonly maxNodes: number;
  readonly maxDepth: number;
  readonly maxItems: number;
  /** Items of one array that are anything but numbers. */
  readonly maxObjects: number;
  /** Members of one object, those of a repeated key counted each. */
  readonly maxMembers: number;
  readonly maxKeyBytes: number;
}

export const JSON_LIMITS: JsonLimits = {
  // 2,000 tools of a hundred values and keys each; a conversation of 10,000 short messages has a quarter of it.
  maxNodes: 250_000,
  // The deepest honest bodies are JSON Schemas in tool definitions, at about 20 levels.
  maxDepth: 100,
  // A text as token numbers, or a vector.
  maxItems: 131_072,
  maxObjects: 10_000,
  maxMembers: 10_000,
  maxKeyBytes: 4096,
};

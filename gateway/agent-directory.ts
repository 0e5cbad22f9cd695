/** Which agents there are, for policy, and what a path may call them. */
import type { AgentAddress } from './caller.ts';

export type Agent =
  /** It acts with all of its owner's rights, so only this machine reaches it. */
  { readonly kind: 'built-in' } | { readonly kind: 'custom'; readonly address: AgentAddress };

export interface AgentDirectory {
  /** @param reference a segment of a path, as the client wrote it */
  find(reference: string): Agent | undefined;
}

/** The agent that every gateway has, and no other one. */
export const builtInAgentOnly: AgentDirectory = {
  find: (reference) => (reference.toLowerCase() === 'default' ? { kind: 'built-in' } : undefined),
};

/** The agent that a request acts on, and `unknown` where its path names one that does not exist. */
export type NamedAgent = Agent | 'none' | 'unknown';

/** What of a route tells it. */
interface Naming {
  /** The parameter of its path that names an agent. */
  readonly agentParameter?: string;
}

export function namedAgent(
  { agentParameter }: Naming,
  params: Readonly<Record<string, string>>,
  agents: AgentDirectory,
): NamedAgent {
  if (agentParameter === undefined) return 'none';
  return agents.find(params[agentParameter] ?? '') ?? 'unknown';
}

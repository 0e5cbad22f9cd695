/** The number of an agent, as requests and settings name it. */
import * as z from 'zod';
import { MAX_AGENT_INDEX } from '../identity/agent-key.ts';

export const agentIndexSchema = z.int().min(0).max(MAX_AGENT_INDEX);

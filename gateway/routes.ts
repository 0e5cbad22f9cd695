/**
 * The whole HTTP surface in one table: every route of the contract has its row, with or without a handler, so that
 * who may call what is settled before anything can be called.
 *
 * Paths stand without their aliases (`path-alias.ts`).
 */
import { CONFIG_BODY_BYTES } from './bounds.ts';
import type { AccessClass } from './policy.ts';
import type { Method, Route } from './route.ts';
import { adminShutdown, adminStatus } from './routes/admin/status.ts';
import { listDevices, renameDevice, revokeDevice } from './routes/admin/devices.ts';
import { closeInvite, createInvite, getInvite, listInvites } from './routes/admin/invites.ts';
import { createKey, listKeys, revokeAllKeys, revokeKey } from './routes/admin/keys.ts';
import { adminModels, loadModel, unloadModel } from './routes/admin/models.ts';
import { countMessageTokens, createMessage } from './routes/inference/anthropic-messages.ts';
import { approvalEvents, decideApproval, listApprovals } from './routes/admin/approvals.ts';
import { chatCompletions } from './routes/inference/chat-completions.ts';
import { completions } from './routes/inference/completions.ts';
import { health, root } from './routes/health.ts';
import { beginPull, listPulls, stopPull } from './routes/admin/pulls.ts';
import { metrics } from './routes/admin/metrics.ts';
import { getModel, listModels } from './routes/inference/models.ts';
import { ollamaChat, ollamaGenerate } from './routes/inference/ollama-inference.ts';
import { openApi } from './routes/openapi.ts';
import { ollamaCopy, ollamaCreate, ollamaDelete, ollamaPush } from './routes/inference/ollama-manage.ts';
import { ollamaPull } from './routes/inference/ollama-pull.ts';
import { ollamaPs, ollamaShow, ollamaTags, ollamaVersion } from './routes/inference/ollama-models.ts';
import { pairChallenge } from './routes/channel/pair-challenge.ts';
import { clearRequests, listRequests } from './routes/admin/request-log.ts';
import { openResponsesSocket } from './routes/responses/socket.ts';
import { compactResponse } from './routes/responses/compact.ts';
import { createResponse } from './routes/responses/create.ts';
import { countInputTokens } from './routes/responses/input-tokens.ts';
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './routes/responses/stored.ts';
import { bodyBytes } from './routes/route-classes.ts';
import { pairByCode, pairInvite, secureCall, secureSession } from './routes/channel/secure.ts';

/** A row of the contract whose part of the service does not exist yet. */
function planned(
  access: Exclude<AccessClass, 'dispatch'>,
  method: Method,
  path: string,
  maxBodyBytes = bodyBytes(method),
): Route {
  return { method, path, access, maxBodyBytes, summary: PLANNED, clientPrefix: access === 'inference' ? '/v1' : '' };
}

function plannedDispatch(path: string): Route {
  const method = 'POST';
  const row = { method, path, access: 'dispatch', agentParameter: 'id', maxBodyBytes: bodyBytes(method) } as const;
  return { ...row, summary: PLANNED, clientPrefix: '' };
}

const PLANNED = 'Part of the contract.';

export const routes: readonly Route[] = [
  root,
  openApi(() => routes),
  pairChallenge,
  pairByCode,
  pairInvite,
  secureSession,
  secureCall,

  health,

  listModels,
  getModel,
  chatCompletions,
  completions,
  createResponse,
  openResponsesSocket,
  countInputTokens,
  compactResponse,
  getResponse,
  cancelResponse,
  deleteResponse,
  listInputItems,
  createMessage,
  countMessageTokens,
  ollamaChat,
  ollamaGenerate,
  ollamaTags,
  ollamaShow,
  ollamaPs,
  ollamaVersion,
  ollamaPull,
  ollamaCopy,
  ollamaDelete,
  ollamaCreate,
  ollamaPush,
  planned('inference', 'POST', '/embeddings'),
  planned('inference', 'POST', '/embed'),
  planned('inference', 'POST', '/audio/transcriptions'),
  planned('inference', 'POST', '/images/generations'),
  planned('inference', 'POST', '/images/edits'),
  planned('inference', 'POST', '/images/upscale'),
  planned('inference', 'POST', '/images/cancel'),
  planned('inference', 'GET', '/images/models'),
  planned('inference', 'POST', '/videos/quote'),
  planned('inference', 'POST', '/videos/generations'),
  planned('inference', 'GET', '/videos/jobs/:id'),
  planned('inference', 'GET', '/videos/jobs/:id/content'),

  planned('tools', 'GET', '/mcp/health'),
  planned('tools', 'GET', '/mcp/tools'),
  planned('tools', 'POST', '/mcp/call'),

  planned('agents', 'POST', '/memory/ingest'),
  planned('agents', 'GET', '/agents'),
  planned('agents', 'GET', '/tasks/:id'),
  planned('agents', 'DELETE', '/tasks/:id'),
  planned('agents', 'POST', '/tasks/:id/clarify'),

  plannedDispatch('/agents/:id/run'),
  plannedDispatch('/agents/:id/dispatch'),

  planned('admin', 'GET', '/admin/config/export'),
  planned('admin', 'GET', '/admin/config/schema'),
  planned('admin', 'POST', '/admin/config/plan', CONFIG_BODY_BYTES),
  planned('admin', 'POST', '/admin/config/apply', CONFIG_BODY_BYTES),
  adminStatus,
  adminShutdown,
  adminModels,
  loadModel,
  unloadModel,
  listPulls,
  beginPull,
  stopPull,
  listKeys,
  createKey,
  revokeKey,
  revokeAllKeys,
  listInvites,
  createInvite,
  getInvite,
  closeInvite,
  listDevices,
  renameDevice,
  revokeDevice,
  listRequests,
  clearRequests,
  listApprovals,
  decideApproval,
  approvalEvents,
  metrics,
];

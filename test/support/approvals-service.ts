/** The service inside the test's own process, so that the test can ask for approvals as a tool or a device would. */
import type { ApprovalParams, PendingApproval } from '../../core/approvals/approval-queue.ts';
import type { approvalKinds } from '../../service/approvals.ts';
import { startServiceHere, type ServiceHere } from './service-here.ts';

export { removeHome, temporaryHome } from './service-here.ts';

export interface ApprovalsService extends ServiceHere {
  /** @throws where as many of this kind wait already as may */
  ask(params?: Partial<ApprovalParams<keyof typeof approvalKinds>>): PendingApproval;
}

export async function startApprovalsService(home: string): Promise<ApprovalsService> {
  const service = await startServiceHere(home);
  return {
    ...service,
    ask(params = {}) {
      const asked = service.running.approvals.request({
        kind: 'tool_permission',
        summary: 'run "ls"',
        lifetimeMs: 600_000,
        ...params,
      });
      if (asked === undefined) throw new Error('too many wait');
      return asked;
    },
  };
}

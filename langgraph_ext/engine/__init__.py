"""The durable agent kernel: agents as persisted state machines on the ledger's database."""

from langgraph_ext.engine.approvals import ToolCallRequest
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.compiler import compile_spec
from langgraph_ext.engine.conditions import operations_ended
from langgraph_ext.engine.engine import AgentGraphEngine
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.hooks import Deny, Replace
from langgraph_ext.engine.injected import InjectedIdempotencyKey
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import Behaviour, Complete, Fail, Progress, Runtime, Wait
from langgraph_ext.engine.records import (
    AgentRunRecord,
    AgentTaskRecord,
    CallRecord,
    OperationRecord,
    RequestRecord,
    SlotRecord,
    TicketRecord,
    TranscriptEntry,
)
from langgraph_ext.engine.releases import Live, Release
from langgraph_ext.engine.role_graph import Binding, Dispatch, Role, RoleGraph
from langgraph_ext.engine.spec import AgentSpec, Executor, PlanExecute, Planner, ReAct
from langgraph_ext.engine.spec_policies import (
    Approval,
    Compaction,
    Deadlines,
    Hook,
    Hooks,
    Limits,
    Retry,
    ToolPolicy,
)
from langgraph_ext.engine.states import (
    AgentStatus,
    CallState,
    MemberState,
    OperationState,
    RequestState,
    TaskState,
    TicketState,
)

__all__ = [
    "AgentGraphEngine",
    "AgentRunRecord",
    "AgentSpec",
    "AgentStatus",
    "AgentTaskRecord",
    "Approval",
    "Begin",
    "Behaviour",
    "Behaviours",
    "Binding",
    "CallRecord",
    "CallState",
    "Compaction",
    "Complete",
    "ConsumeTicket",
    "Deadlines",
    "Deny",
    "Dispatch",
    "Executor",
    "Fail",
    "Hook",
    "Hooks",
    "InjectedIdempotencyKey",
    "Limits",
    "Live",
    "MemberState",
    "OperationRecord",
    "OperationState",
    "PlanExecute",
    "Planner",
    "Progress",
    "ReAct",
    "Release",
    "ReleaseTicket",
    "Replace",
    "RequestRecord",
    "RequestState",
    "Retry",
    "Role",
    "RoleGraph",
    "Runtime",
    "SlotRecord",
    "TaskState",
    "TicketRecord",
    "TicketState",
    "ToolCallRequest",
    "ToolPolicy",
    "TranscriptEntry",
    "Wait",
    "compile_spec",
    "operations_ended",
]

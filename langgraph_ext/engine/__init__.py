"""The durable agent kernel. What is here so far: agent specs, and the compiler that makes releases of them."""

from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.compiler import compile_spec
from langgraph_ext.engine.injected import InjectedIdempotencyKey
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

__all__ = [
    "AgentSpec",
    "Approval",
    "Behaviours",
    "Binding",
    "Compaction",
    "Deadlines",
    "Dispatch",
    "Executor",
    "Hook",
    "Hooks",
    "InjectedIdempotencyKey",
    "Limits",
    "Live",
    "PlanExecute",
    "Planner",
    "ReAct",
    "Release",
    "Retry",
    "Role",
    "RoleGraph",
    "ToolPolicy",
    "compile_spec",
]

"""Checks of a draft: names, references, bindings and the rules of roles.

Each is a function of the draft that yields what it finds. A name that leads nowhere is told by the check of references,
one that is given twice by that of names; the others look only at what such a name does not hide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from langgraph_ext.engine.diagnostics import pointer
from langgraph_ext.engine.spec_drafts import BUILT_IN_VERSIONS, Draft, DraftRole, Ref, name_of
from langgraph_ext.engine.spec_policies import HOOK_KINDS, Hooks
from langgraph_ext.errors import Diagnostic

__all__ = ["CHECKS", "SPEC_VERSION", "check_hooks"]

SPEC_VERSION = 1

_CALLABLE = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
"""Names that a model may call: what providers let through, and a little more."""


def check_version(draft: Draft) -> Iterator[Diagnostic]:
    """Only forms that this code knows are compiled."""
    if draft.spec.version != SPEC_VERSION:
        yield Diagnostic(
            code="version_unsupported",
            path="/version",
            message=f"is version {draft.spec.version} of the form of a spec; this code knows version {SPEC_VERSION}",
        )


def check_names(draft: Draft) -> Iterator[Diagnostic]:
    """Within each kind a name is given once, and so is each name that the root may call."""
    tools = [Ref(each.name, each.at) for each in draft.tools if each.name is not None]
    subagents = _subagents(draft)
    executors = _executors(draft)
    yield from _twice("role", (role.name for role in draft.roles))
    yield from _twice("tool", tools)
    yield from _twice("subagent", subagents)
    for role in draft.roles:
        yield from _twice("tool", role.tools)
    root = draft.role(draft.entry.name)
    if root is not None:
        own = _first_of_each(root.tools)
        yield from _twice("callable", [*own, *_first_of_each(executors), *_first_of_each(subagents)])
    yield from check_hooks(draft.spec.hooks)


def check_hooks(hooks: Hooks) -> Iterator[Diagnostic]:
    """Within each kind a name is given once: the record of what was decided tells them apart by that."""
    for kind in HOOK_KINDS:
        yield from _twice(f"{kind} hook", _hook_names(hooks, kind))


def check_forms(draft: Draft) -> Iterator[Diagnostic]:
    """What a model calls has a name that it can say; everything else has one at all."""
    tools = [Ref(each.name, each.at) for each in draft.tools if each.name is not None]
    for each in [*tools, *_executors(draft), *_subagents(draft)]:
        if not _CALLABLE.fullmatch(each.name):
            yield Diagnostic(
                code="name_invalid",
                path=each.at,
                message=f"{each.name!r} is not a name that a model can call: 1 to 128 of letters, digits, and _ . : -",
            )
    rest = [Ref(draft.spec.name, "/name"), *(role.name for role in draft.roles if role.role != "executor")]
    for each in rest:
        if not each.name:
            yield Diagnostic(code="name_invalid", path=each.at, message="a name is not empty")


def check_references(draft: Draft) -> Iterator[Diagnostic]:
    """Whatever is named is there."""
    roles = {role.name.name for role in draft.roles}
    tools = {each.name for each in draft.tools}
    callables = tools | {each.name for each in [*_executors(draft), *_subagents(draft)]}
    yield from _dangling("role", roles, _role_references(draft))
    yield from _dangling("model", draft.models, (role.model for role in draft.roles if role.model is not None))
    yield from _dangling("tool", tools, (each for role in draft.roles for each in role.tools))
    yield from _dangling("tool", tools, _keys(draft.spec.tool_policies, "tool_policies"))
    yield from _dangling("tool", tools, _keys(draft.spec.deadlines.per_tool, "deadlines", "per_tool"))
    yield from _dangling("tool, executor or subagent", callables, _keys(draft.spec.interrupt_on, "interrupt_on"))


def check_models(draft: Draft) -> Iterator[Diagnostic]:
    """Every role has a model."""
    for role in draft.roles:
        if role.model is None:
            yield Diagnostic(code="model_missing", path=role.model_at, message="every role needs a model; name one")


def check_bindings(draft: Draft) -> Iterator[Diagnostic]:
    """Every role is bound to exactly one behaviour, and none to the behaviour of another role."""
    for role in _distinct_roles(draft):
        bound = [each for each in draft.bindings if each.role.name == role.name.name]
        if not bound:
            yield Diagnostic(
                code="role_unbound", path=role.at, message=f"no behaviour is bound to {role.name.name!r}; bind one"
            )
        if draft.role(role.name.name) is None:
            continue
        if len(bound) > 1:
            yield Diagnostic(
                code="role_bound_again",
                path=bound[1].at,
                related=tuple(each.at for each in bound if each is not bound[1]),
                message=f"{role.name.name!r} is bound to {len(bound)} behaviours; keep one",
            )
        for each in bound:
            if each.behaviour in BUILT_IN_VERSIONS and each.behaviour != role.role:
                yield Diagnostic(
                    code="behaviour_mismatch",
                    path=each.at,
                    related=(role.at,),
                    message=f"binds a role that is {role.role!r} to the behaviour {each.behaviour!r}",
                )


def check_roles(draft: Draft) -> Iterator[Diagnostic]:
    """A ReAct agent is one `react` role; a plan agent is one `planner`, and executors."""
    root_kind, strangers = _KINDS[draft.kind]
    roots = [role for role in _distinct_roles(draft) if role.role == root_kind]
    root = draft.role(draft.entry.name)
    if root is not None and root.role != root_kind and root.role not in strangers:
        yield Diagnostic(
            code="entry_role",
            path=draft.entry.at,
            related=(root.at,),
            message=f"the entry of a {draft.kind} agent is its {root_kind!r} role, not one that is {root.role!r}",
        )
    if len(roots) != 1:
        yield Diagnostic(
            code=f"{root_kind}_count",
            path=roots[1].at if roots else draft.plan_at,
            related=tuple(role.at for role in roots[:1] + roots[2:]),
            message=f"a {draft.kind} agent has one {root_kind!r} role, not {len(roots)}",
        )
    for role in draft.roles:
        if role.role in strangers:
            yield Diagnostic(
                code=f"{draft.kind}_has_{role.role}",
                path=role.at,
                message=f"a {draft.kind} agent has no role that is {role.role!r}",
            )


_KINDS = {"react": ("react", ("executor", "planner")), "plan": ("planner", ("react",))}
"""By strategy: what its root is, and which roles it has not."""


def check_dispatches(draft: Draft) -> Iterator[Diagnostic]:
    """Only a planner gives work away, only to executors, and nobody to the root."""
    seen: dict[tuple[str, str], str] = {}
    for at, source, target in draft.dispatches:
        first = seen.setdefault((source.name, target.name), at)
        if first != at:
            yield Diagnostic(
                code="duplicate_dispatch", path=at, related=(first,), message="says again what another dispatch says"
            )
            continue
        check = _plan_dispatch if draft.kind == "plan" else _react_dispatch
        yield from check(draft, at, source, target)


def _plan_dispatch(draft: Draft, at: str, source: Ref, target: Ref) -> Iterator[Diagnostic]:
    """Each end is looked at by itself, so that one that dangles does not hide the other."""
    giver, taker = draft.role(source.name), draft.role(target.name)
    if giver is not None and giver.role != "planner":
        yield Diagnostic(
            code="dispatch_from_other",
            path=source.at,
            related=(giver.at,),
            message=f"{source.name!r} is {giver.role!r}, and only a planner dispatches",
        )
    if taker is not None and target.name == draft.entry.name:
        yield Diagnostic(
            code="dispatch_to_root", path=target.at, related=(draft.entry.at,), message="no role dispatches to the root"
        )
    elif taker is not None and taker.role != "executor":
        yield Diagnostic(
            code="dispatch_to_other",
            path=target.at,
            related=(taker.at,),
            message=f"{target.name!r} is {taker.role!r}, and a planner dispatches to executors only",
        )


def _react_dispatch(draft: Draft, at: str, source: Ref, target: Ref) -> Iterator[Diagnostic]:
    """There is nobody to dispatch to, if both ends are there at all."""
    if draft.role(source.name) is not None and draft.role(target.name) is not None:
        yield Diagnostic(code="react_dispatches", path=at, message="a react agent has no dispatches")


CHECKS = (
    check_version,
    check_names,
    check_forms,
    check_references,
    check_models,
    check_bindings,
    check_roles,
    check_dispatches,
)


def _subagents(draft: Draft) -> list[Ref]:
    return [Ref(each.name, pointer("subagents", n, "name")) for n, each in enumerate(draft.spec.subagents)]


def _executors(draft: Draft) -> list[Ref]:
    return [role.name for role in draft.roles if role.role == "executor"]


def _hook_names(hooks: Hooks, kind: str) -> Iterator[Ref]:
    for n, hook in enumerate(getattr(hooks, kind)):
        yield Ref(hook.name or name_of(hook.call) or type(hook.call).__qualname__, pointer("hooks", kind, n))


def _role_references(draft: Draft) -> Iterator[Ref]:
    yield draft.entry
    yield from (each.role for each in draft.bindings)
    for _, source, target in draft.dispatches:
        yield from (source, target)


def _keys(parts: Iterable[str], *at: str) -> Iterator[Ref]:
    return (Ref(name, pointer(*at, name)) for name in parts)


def _distinct_roles(draft: Draft) -> list[DraftRole]:
    """The first role of each name."""
    return list({role.name.name: role for role in reversed(draft.roles)}.values())[::-1]


def _first_of_each(names: Iterable[Ref]) -> list[Ref]:
    return list({each.name: each for each in reversed(list(names))}.values())[::-1]


def _twice(kind: str, names: Iterable[Ref]) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {}
    for each in names:
        first = seen.setdefault(each.name, each.at)
        if first != each.at:
            yield Diagnostic(
                code="duplicate_name",
                path=each.at,
                related=(first,),
                message=f"{each.name!r} is the name of another {kind} already",
            )


def _dangling(kind: str, known: Iterable[str | None], references: Iterable[Ref]) -> Iterator[Diagnostic]:
    there = set(known)
    for each in references:
        if each.name not in there:
            yield Diagnostic(
                code="dangling_reference", path=each.at, message=f"there is no {kind} of the name {each.name!r}"
            )

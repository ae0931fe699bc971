"""Scenarios: the same situation for LangChain's `create_agent` and for `AgentNode`, played by real processes."""

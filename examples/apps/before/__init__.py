"""The graphs as one writes them with LangGraph alone."""

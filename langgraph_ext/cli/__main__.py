"""`python -m langgraph_ext.cli`, as `langgraph-ext`."""

from langgraph_ext.cli import main

if __name__ == "__main__":
    main()

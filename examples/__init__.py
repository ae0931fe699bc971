"""Applications that use `langgraph_ext`, each one a package that runs by itself."""

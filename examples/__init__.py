"""Applications that use `langgraph_ext`, each one a package or a module that runs by itself."""

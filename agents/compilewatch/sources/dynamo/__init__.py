"""Sources from Dynamo: compilations, guards, graph breaks and limits."""

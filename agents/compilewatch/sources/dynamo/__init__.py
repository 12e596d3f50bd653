"""Dynamo sources: compilations, guards, graph breaks and recompile limits."""

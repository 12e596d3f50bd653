"""Tests of the interfaces for programs."""

"""Tests of charts as pure data."""

"""Tests of the charts as pure data."""

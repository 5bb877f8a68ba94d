"""Tests of Winnow, by kind."""

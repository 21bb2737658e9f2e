"""Tests of experiments of many runs."""

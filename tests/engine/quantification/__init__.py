"""Tests of quantification."""

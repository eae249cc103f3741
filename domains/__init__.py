"""Domains: data, models and scores, one folder for each kind of data."""

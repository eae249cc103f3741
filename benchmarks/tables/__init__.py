"""The published tables, one YAML file each."""

"""Tables: published ones and a user's own, as YAML, rendered from records alone."""

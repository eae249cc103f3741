"""One cell: a loss is trained in a domain and scored."""

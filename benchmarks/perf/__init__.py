"""Times and memory, measured side by side with what people use today."""

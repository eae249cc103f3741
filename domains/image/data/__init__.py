"""Where images come from: declared sets and users' own, in memory or in files."""

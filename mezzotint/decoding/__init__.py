"""Pure functions that turn readings into text, and the plain loops that fast paths must equal."""

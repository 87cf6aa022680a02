"""How fast: tasks put to an endpoint under load, what it took until they were accepted, and what paper says of it."""

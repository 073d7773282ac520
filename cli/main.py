"""memoryd's command line."""

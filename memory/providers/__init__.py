"""Who answers a request: the rules, or a model."""

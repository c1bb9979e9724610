"""Training and independent evaluation of the anchor: tool retrieval in a model's own embedding layer."""

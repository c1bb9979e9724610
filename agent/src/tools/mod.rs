//! Servers and tools: the catalogue, retrieval, policy, and the calls themselves.

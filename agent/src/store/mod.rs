//! The only place that speaks SQL: the queue of trajectories and the notes.

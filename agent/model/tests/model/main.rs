//! The model runtime on the fixture bundles: tiny random models with an independent reference's results beside them.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod fixtures;

mod adapter;
mod conversation;
mod fuzz;
mod grammar;
mod hostile;
mod lost_file;
mod parity;
mod speculation;
mod state;

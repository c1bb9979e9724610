//! The model runtime on the fixture bundles: tiny random models with an independent reference's results beside them.

mod fixtures;

mod conversation;
mod grammar;
mod hostile;
mod parity;

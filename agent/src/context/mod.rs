//! The prompt: fragments in a fixed order, each with a cap, append only within a stage.
//!
//! Order: card, shortlist, configuration, task, turns. Nothing here decides what is in a fragment's budget twice: a
//! fragment is cut when it is made, what was left out is counted in it, and it never changes afterwards, so that the
//! tokens of a prompt are a prefix of the tokens of the next one.

mod fragment;
mod shortlist;
mod style;

pub use fragment::{Fragment, FragmentKind, Piece, Prompt};
pub use shortlist::{Listed, Shortlist, ShortlistCaps, described};
pub use style::{Style, Template};

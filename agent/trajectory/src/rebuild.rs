//! The prompt of a turn, token for token, out of what was appended before each turn.
//!
//! A turn records only the tokens that its prompt has beyond the context before it (the last prompt and what was generated
//! after it), and how many of those were kept if some had to go. Where one of these was not recorded, every later prompt
//! is unknown until a turn that keeps nothing.

use crate::{Reason, Recorded, Trajectory};

impl Trajectory {
    /// The token ids of the prompt from which turn `i` was generated; absent, with the reason, if the turn was not
    /// generated or what is needed was not recorded, and `corrupt` if it does not add up to the length recorded.
    pub fn prompt_ids(&self, i: u32) -> Recorded<Vec<u32>> {
        let mut held = Recorded::Value(Vec::new());
        for turn in self.turns.iter().filter(|turn| turn.i <= i) {
            let is_asked = turn.i == i;
            let (delta, own) = match (&turn.prompt_delta_ids, &turn.token_ids) {
                (Recorded::Value(delta), Recorded::Value(own)) => (delta, own),
                (Recorded::Absent(reason), _) | (_, Recorded::Absent(reason)) => {
                    if is_asked {
                        return Recorded::Absent(*reason);
                    }
                    if !matches!(reason, Reason::NotGenerated | Reason::Scripted) {
                        held = Recorded::Absent(*reason);
                    }
                    continue;
                }
            };
            let kept = match (held, turn.mark) {
                (_, Some(0)) => Some(Vec::new()),
                (Recorded::Absent(reason), _) if is_asked => return Recorded::Absent(reason),
                (Recorded::Absent(reason), _) => {
                    held = Recorded::Absent(reason);
                    continue;
                }
                (Recorded::Value(ids), None) => Some(ids),
                (Recorded::Value(mut ids), Some(mark)) => {
                    let fits = mark as usize <= ids.len();
                    ids.truncate(mark as usize);
                    fits.then_some(ids)
                }
            };
            let expected = turn.context.value().and_then(|context| context.n_tokens.value());
            let prompt = kept.map(|mut ids| {
                ids.extend(delta);
                ids
            });
            held = match prompt {
                Some(ids) if expected.is_none_or(|&n| n as usize == ids.len()) => Recorded::Value(ids),
                _ => Recorded::Absent(Reason::Corrupt),
            };
            if is_asked {
                return held;
            }
            if let Recorded::Value(ids) = &mut held {
                ids.extend(own);
            }
        }
        Recorded::Absent(Reason::NotGenerated)
    }
}

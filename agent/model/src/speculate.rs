//! Drafts without a second model: what followed the same tokens earlier in the conversation may follow them again.
//!
//! A draft is evaluated in one batch with the token before it. Each token is then chosen from the same logits as without a
//! draft, by the same draw, so that what is said stays the same: a token of the draft is accepted with the probability that
//! the model gives it, and what is chosen in its place follows the model's distribution.
//!
//! Whether a draft pays is known from two measurements: how often tokens that would have been drafted came true, which is
//! counted for every token whether a draft was evaluated or not, and what batches of each size take.

use std::time::Duration;

/// Tokens of a draft at most: a batch of 16 costs about as many tokens as it can bring.
pub(crate) const MAX_DRAFT: usize = 15;
/// Tokens at the end that are looked for, at most: longer matches are not more telling.
const MAX_MATCH: usize = 12;
/// Matches of at least so many tokens are counted apart, since they come true more often.
const MATCH_CLASSES: [usize; 4] = [1, 2, 4, 8];
/// How often a first guess of each class is taken to come true before there is experience.
const FIRST_RATES: [f32; 4] = [0.1, 0.3, 0.5, 0.7];
/// Weight of the newest experience.
const RATE_WEIGHT: f32 = 0.1;
const TIME_WEIGHT: f64 = 0.2;
/// What a token more adds to the time of a batch before there is experience, as a share of a single token's.
const FIRST_MARGIN: f64 = 0.25;
/// A draft must promise so much more than none.
const WORTH: f64 = 1.05;

/// The guesses of one completion, and the experience with them.
pub(crate) struct Drafts {
    /// What comes next if history repeats itself.
    guess: Vec<u32>,
    /// How many tokens of the guess came true already.
    n_true: usize,
    class: usize,
    /// The length of drafts where it is not found by measuring.
    fixed: Option<usize>,
    rates: [f32; MATCH_CLASSES.len()],
    /// Seconds of batches by their size; 0 for one that was not measured.
    seconds: [f64; MAX_DRAFT + 2],
}

impl Drafts {
    pub(crate) fn new(fixed: Option<usize>) -> Drafts {
        Drafts { guess: Vec::new(), n_true: 0, class: 0, fixed, rates: FIRST_RATES, seconds: [0.0; MAX_DRAFT + 2] }
    }

    /// The tokens worth evaluating behind `tokens`, of which `n_pending` are not evaluated; at most `limit`.
    pub(crate) fn draft(&mut self, tokens: &[u32], n_pending: usize, limit: usize) -> &[u32] {
        self.look_up(tokens);
        let limit = self.guess.len().min(limit).min((MAX_DRAFT + 1).saturating_sub(n_pending));
        if let Some(fixed) = self.fixed {
            return &self.guess[..limit.min(fixed)];
        }
        let rate = f64::from(self.rates[self.class]);
        let (mut best, mut best_n) = (WORTH / self.time_of(n_pending), 0);
        let (mut expected, mut reached) = (1.0, 1.0);
        for n in 1..=limit {
            reached *= rate;
            expected += reached;
            let speed = expected / self.time_of(n_pending + n);
            if speed > best {
                (best, best_n) = (speed, n);
            }
        }
        &self.guess[..best_n]
    }

    /// Hears every token that was chosen, drafted or not.
    pub(crate) fn chosen(&mut self, token: u32) {
        let Some(&guess) = self.guess.get(self.n_true) else { return };
        let came_true = guess == token;
        let rate = &mut self.rates[self.class];
        *rate += RATE_WEIGHT * (f32::from(u8::from(came_true)) - *rate);
        self.advance(came_true);
    }

    /// Hears a token that was forced: it tells nothing about the model.
    pub(crate) fn forced(&mut self, token: u32) {
        let came_true = self.guess.get(self.n_true) == Some(&token);
        self.advance(came_true);
    }

    fn advance(&mut self, came_true: bool) {
        if came_true {
            self.n_true += 1;
        } else {
            self.guess.clear();
            self.n_true = 0;
        }
    }

    /// Hears what a batch took.
    pub(crate) fn took(&mut self, n_tokens: usize, time: Duration) {
        if let Some(seconds) = self.seconds.get_mut(n_tokens) {
            let new = time.as_secs_f64();
            *seconds = if *seconds == 0.0 { new } else { *seconds + TIME_WEIGHT * (new - *seconds) };
        }
    }

    /// What a batch takes: as measured, for it or for a larger one if that was faster; else by what a token more has cost so far.
    fn time_of(&self, n_tokens: usize) -> f64 {
        let n_tokens = n_tokens.min(MAX_DRAFT + 1);
        let measured = |n: &usize| self.seconds[*n] > 0.0;
        let at_most = (n_tokens..self.seconds.len()).filter(measured).map(|n| self.seconds[n]);
        let at_most = at_most.fold(f64::INFINITY, f64::min);
        if self.seconds[n_tokens] > 0.0 {
            return at_most;
        }
        let Some(smallest) = (1..self.seconds.len()).find(measured) else {
            return 1.0 + (n_tokens - 1) as f64 * FIRST_MARGIN;
        };
        let single = self.seconds[smallest] / (1.0 + (smallest - 1) as f64 * FIRST_MARGIN);
        let Some(nearest) = (1..n_tokens).rev().find(measured) else { return at_most.min(single) };
        let steps = (nearest - smallest).max(1) as f64;
        let margin = match nearest == smallest {
            true => FIRST_MARGIN * single,
            false => ((self.seconds[nearest] - self.seconds[smallest]) / steps).clamp(0.0, FIRST_MARGIN * single),
        };
        at_most.min(self.seconds[nearest] + (n_tokens - nearest) as f64 * margin)
    }

    /// Finds the longest match of the last tokens, the latest of equals, and takes what followed it; where that reaches the
    /// end, it is taken to follow itself.
    fn look_up(&mut self, tokens: &[u32]) {
        self.guess.clear();
        self.n_true = 0;
        let (mut longest, mut follows) = (0, 0);
        for end in (1..tokens.len()).rev() {
            let common = tokens[..end].iter().rev().zip(tokens.iter().rev()).take(MAX_MATCH);
            let length = common.take_while(|(a, b)| a == b).count();
            if length > longest {
                (longest, follows) = (length, end);
            }
            if length == MAX_MATCH {
                break;
            }
        }
        if longest > 0 {
            self.class = MATCH_CLASSES.iter().rposition(|&least| longest >= least).unwrap_or(0);
            for at in follows..follows + MAX_DRAFT {
                let next = tokens.get(at).copied().unwrap_or_else(|| self.guess[at - tokens.len()]);
                self.guess.push(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(tokens: &[u32]) -> Vec<u32> {
        let mut drafts = Drafts::new(None);
        drafts.look_up(tokens);
        drafts.guess
    }

    #[test]
    fn the_longest_match_decides_and_of_equals_the_latest() {
        assert_eq!(guess(&[1, 2, 3, 9, 2, 3, 7, 1, 2, 3])[..9], [9, 2, 3, 7, 1, 2, 3, 9, 2]);
        assert_eq!(guess(&[3, 9, 3, 7, 3])[..5], [7, 3, 7, 3, 7]);
        assert_eq!(guess(&[5, 5, 5]), [5; MAX_DRAFT]);
        assert_eq!(guess(&[1, 2, 3]), Vec::<u32>::new());
        assert_eq!(guess(&[]), Vec::<u32>::new());
    }

    #[test]
    fn a_batch_is_taken_to_cost_what_was_measured_or_less_than_a_larger_one() {
        let mut drafts = Drafts::new(None);
        let times = |drafts: &Drafts| [3, 4, 5, 8, 100].map(|n| (drafts.time_of(n) * 1000.0).round());
        drafts.took(1, Duration::from_millis(100));
        assert_eq!(times(&drafts), [150.0, 175.0, 200.0, 275.0, 475.0]);
        drafts.took(4, Duration::from_millis(900));
        assert_eq!(times(&drafts), [150.0, 900.0, 925.0, 1000.0, 1200.0]);
        drafts.took(8, Duration::from_millis(160));
        assert_eq!(times(&drafts), [150.0, 160.0, 160.0, 160.0, 229.0]);
        let mut drafts = Drafts::new(None);
        drafts.took(5, Duration::from_millis(200));
        assert_eq!(times(&drafts), [100.0, 100.0, 200.0, 275.0, 475.0]);
    }

    #[test]
    fn drafts_grow_where_they_come_true_and_stop_where_they_do_not() {
        let mut drafts = Drafts::new(None);
        drafts.took(1, Duration::from_millis(100));
        let mut tokens: Vec<u32> = (0..20).chain(0..2).collect();
        for next in (0..20).chain(0..20).skip(2).cycle().take(200) {
            drafts.draft(&tokens, 1, 100);
            drafts.chosen(next);
            tokens.push(next);
        }
        assert!(drafts.draft(&tokens, 1, 100).len() > 4);
        assert!(drafts.draft(&tokens, 1, 3).len() <= 3);
        assert!(drafts.draft(&tokens, 16, 100).is_empty());
        for next in 0..100 {
            drafts.draft(&tokens, 1, 100);
            tokens.push(if next % 2 == 0 { 7 } else { 1000 + next });
            drafts.chosen(tokens[tokens.len() - 1]);
        }
        tokens.push(7);
        assert!(drafts.draft(&tokens, 1, 100).is_empty());
    }
}

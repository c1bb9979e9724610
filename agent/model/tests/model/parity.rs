//! The same tokens as the independent forward pass in numpy, which wrote `expected.json` beside the fixture bundles.

use std::fs;

use crate::fixtures::{BUNDLES, argmax, fixture, model, prefill, prefilled};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    /// A choice whose top two logits are closer than this may fall either way.
    bound: f32,
    /// How far a logit may be from the reference's.
    logit_bound: f32,
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Prompt {
    ids: Vec<u32>,
    tokens: Vec<u32>,
    margins: Vec<f32>,
    first_logits: Vec<f32>,
}

fn expected(name: &str) -> Expected {
    serde_json::from_slice(&fs::read(fixture(name).join("expected.json")).unwrap()).unwrap()
}

#[test]
fn greedy_tokens_are_the_reference_s_wherever_the_margin_decides() {
    for name in BUNDLES {
        let (model, expected) = (model(name), expected(name));
        assert_eq!(expected.prompts.len(), 5);
        for prompt in &expected.prompts {
            let mut conversation = prefilled(&model, &prompt.ids);
            let mut n_decided = 0;
            for (at, (&token, &margin)) in prompt.tokens.iter().zip(&prompt.margins).enumerate() {
                if margin > expected.bound {
                    assert_eq!(argmax(conversation.logits().unwrap()), token, "{name}, token {at}, margin {margin}");
                    n_decided += 1;
                }
                prefill(&mut conversation, &[token]).unwrap();
            }
            assert_eq!(prompt.tokens.len(), 64);
            assert!(n_decided >= 32, "{name}: only {n_decided} of 64 choices are decided");
        }
    }
}

#[test]
fn logits_after_the_prompt_are_near_the_reference_s() {
    for name in BUNDLES {
        let (model, expected) = (model(name), expected(name));
        for prompt in &expected.prompts {
            let mut conversation = prefilled(&model, &prompt.ids);
            let logits = conversation.logits().unwrap();
            let differences = logits.iter().zip(&prompt.first_logits).map(|(a, b)| (a - b).abs());
            let largest = differences.fold(0.0, f32::max);
            assert!(largest <= expected.logit_bound, "{name}: logits differ by {largest}");
        }
    }
}

//! Working ahead changes what it costs, not what is said.

use std::ops::ControlFlow;

use crate::fixtures::{BUNDLES, argmax, model, prefilled};
use mote_model::{Completion, GenerateOptions, Grammar, Model, Sampling, Speculate};

/// A text that repeats itself, with a start of its own.
fn repeating(seed: u32) -> Vec<u32> {
    let period: Vec<u32> = (0..9).map(|i| 5 + (seed * 31 + i * 67) % 450).collect();
    (0..seed % 5).map(|i| 30 + i).chain(period.iter().copied().cycle().take(40)).collect()
}

fn complete(model: &Model, ids: &[u32], grammar: Option<&Grammar>, options: &GenerateOptions) -> Completion {
    prefilled(model, ids).generate(options, grammar, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn options(temperature: f32, seed: u64, speculate: Speculate) -> GenerateOptions {
    let sampling = Sampling { temperature, seed, ..Sampling::default() };
    GenerateOptions { max_tokens: 48, sampling, speculate, ..GenerateOptions::default() }
}

fn said(completion: &Completion) -> (&[u32], &[f32], &[bool], &str) {
    (&completion.tokens, &completion.logprobs, &completion.forced, &completion.text)
}

#[test]
fn drafts_change_no_token_and_no_log_probability() {
    let (mut n_drafted, mut n_accepted) = (0, 0);
    for name in BUNDLES {
        let model = model(name);
        for seed in 0..12 {
            let ids = repeating(seed);
            let temperature = [0.0, 0.7, 1.3][seed as usize % 3];
            let plain = complete(&model, &ids, None, &options(temperature, seed.into(), Speculate::Off));
            assert_eq!((plain.drafted, plain.accepted), (0, 0));
            for speculate in [Speculate::Auto, Speculate::Always(1), Speculate::Always(4), Speculate::Always(15)] {
                let ahead = complete(&model, &ids, None, &options(temperature, seed.into(), speculate));
                assert_eq!(said(&ahead), said(&plain), "{name}, seed {seed}, {speculate:?}");
                (n_drafted, n_accepted) = (n_drafted + ahead.drafted, n_accepted + ahead.accepted);
                assert!(ahead.accepted <= ahead.drafted && ahead.accepted < 48);
            }
        }
    }
    assert!(n_accepted > 100 && n_accepted < n_drafted, "{n_accepted} of {n_drafted}");
}

#[test]
fn drafts_go_with_a_grammar() {
    let lark = r#"start: line{6}
line: "set(" NAME ", " NUMBER ")\n"
NAME: /[a-c]{1,3}/
NUMBER: /[0-3]{1,3}/
"#;
    let mut n_accepted = 0;
    for name in BUNDLES {
        let model = model(name);
        let grammar = Grammar::compile(model.tokenizer(), lark).unwrap();
        let prompt = model.tokenizer().encode("set(ab, 12)\nset(ab, 12)\nset(ab, 12)\n").unwrap();
        for seed in 0..8 {
            let temperature = [0.0, 1.0][seed as usize % 2];
            let with = |speculate| GenerateOptions { max_tokens: 120, ..options(temperature, seed, speculate) };
            let plain = complete(&model, &prompt, Some(&grammar), &with(Speculate::Off));
            for n_tokens in [2, 8, 15] {
                let ahead = complete(&model, &prompt, Some(&grammar), &with(Speculate::Always(n_tokens)));
                assert_eq!(said(&ahead), said(&plain), "{name}, seed {seed}");
                n_accepted += ahead.accepted;
            }
        }
    }
    assert!(n_accepted > 10, "{n_accepted}");
}

#[test]
fn a_conversation_goes_on_as_if_there_had_been_no_draft() {
    let model = model("tiny-qwen3");
    let ids = repeating(3);
    let twice = |speculate| {
        let mut conversation = prefilled(&model, &ids);
        let first = GenerateOptions { max_tokens: 7, ..options(0.0, 0, speculate) };
        conversation.generate(&first, None, &mut |_| ControlFlow::Continue(())).unwrap();
        let logits = conversation.logits().unwrap().to_vec();
        conversation.truncate(ids.len() + 2);
        conversation.generate(&first, None, &mut |_| ControlFlow::Continue(())).unwrap();
        (logits, conversation.tokens().to_vec())
    };
    assert_eq!(twice(Speculate::Off), twice(Speculate::Always(15)));
}

/// Pearson's statistic of the second token's counts against its exact probabilities, where the first is the likeliest one and
/// the second was evaluated in a batch with it whenever history offered a draft.
#[test]
fn draws_with_a_draft_follow_the_model_s_probabilities() {
    const TEMPERATURE: f32 = 0.4;
    const BINS: usize = 10;
    /// Of ten bins, passed by chance once in a million.
    const CRITICAL: f64 = 46.0;
    let model = model("tiny-llama");
    let starts_from_history = |ids: &Vec<u32>| ids.contains(&argmax(prefilled(&model, ids).logits().unwrap()));
    let ids = (0..500).map(repeating).find(starts_from_history).unwrap();
    let mut base = prefilled(&model, &ids);
    let first = argmax(base.logits().unwrap());
    let mut after = prefilled(&model, &[ids.as_slice(), &[first]].concat());
    let logits = after.logits().unwrap();
    let max = logits.iter().copied().fold(f32::MIN, f32::max);
    let weights: Vec<f64> = logits.iter().map(|logit| f64::from((logit - max) / TEMPERATURE).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut likeliest: Vec<usize> = (0..weights.len()).collect();
    likeliest.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));

    let (mut counts, mut n_samples, mut n_drafted) = ([0.0; BINS], 0.0, 0);
    for seed in 0..4000 {
        let two = GenerateOptions { max_tokens: 3, ..options(TEMPERATURE, seed, Speculate::Always(4)) };
        let mut conversation = base.fork().unwrap();
        let made = conversation.generate(&two, None, &mut |_| ControlFlow::Continue(())).unwrap();
        if made.tokens[0] == first && made.tokens.len() > 1 {
            let bin = likeliest.iter().position(|&token| token == made.tokens[1] as usize).unwrap().min(BINS - 1);
            counts[bin] += 1.0;
            n_samples += 1.0;
            n_drafted += made.drafted;
        }
    }
    let expected = |bin: usize| {
        let tokens = if bin == BINS - 1 { &likeliest[bin..] } else { &likeliest[bin..=bin] };
        n_samples * tokens.iter().map(|&token| weights[token]).sum::<f64>() / total
    };
    let statistic: f64 = (0..BINS).map(|bin| (counts[bin] - expected(bin)).powi(2) / expected(bin)).sum();
    assert!(n_samples > 300.0 && n_drafted > 100, "{n_samples} {n_drafted}");
    assert!(statistic < CRITICAL, "{statistic}: {counts:?}");
}

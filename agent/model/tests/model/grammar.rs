//! What is written under a grammar is in its language, and what it leaves no choice about costs no decoding.

use std::ops::ControlFlow;

use crate::fixtures::{BUNDLES, model, prefilled};
use mote_model::{Completion, ErrorKind, GenerateOptions, Grammar, Model, Sampling, Stop};

fn complete(model: &Model, lark: &str, options: &GenerateOptions) -> Completion {
    let grammar = Grammar::compile(model.tokenizer(), lark).unwrap();
    let mut conversation = prefilled(model, &model.tokenizer().encode("Task: count. Program:").unwrap());
    let completion = conversation.generate(options, Some(&grammar), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(conversation.tokens().ends_with(&completion.tokens));
    completion
}

fn sampled(seed: u64) -> GenerateOptions {
    GenerateOptions {
        sampling: Sampling { temperature: 1.5, seed, ..Sampling::default() },
        ..GenerateOptions::default()
    }
}

#[test]
fn sampled_text_is_in_the_language() {
    let lark = r#"start: call ("\n" call){2}
call: NAME "(" NUMBER ("," NUMBER){0,3} ")"
NAME: /[a-z]{1,6}/
NUMBER: /[0-9]{1,4}/
"#;
    for name in BUNDLES {
        let model = model(name);
        for seed in 0..8 {
            let completion = complete(&model, lark, &sampled(seed));
            assert!(matches!(completion.stop, Stop::GrammarEnd | Stop::StopToken), "{:?}", completion.stop);
            assert_eq!(completion.text.lines().count(), 3, "{:?}", completion.text);
            for line in completion.text.lines() {
                let (name, arguments) = line.strip_suffix(')').and_then(|line| line.split_once('(')).unwrap();
                assert!((1..=6).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase()), "{line}");
                let numbers: Vec<&str> = arguments.split(',').collect();
                assert!((1..=4).contains(&numbers.len()), "{line}");
                assert!(
                    numbers.iter().all(|n| (1..=4).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit())),
                    "{line}"
                );
            }
        }
    }
}

#[test]
fn text_without_a_choice_is_forced() {
    let model = model("tiny-llama");
    let completion = complete(&model, r#"start: "answer(" /[0-9]/ ", status=\"complete\")""#, &sampled(1));
    assert!(
        completion.text.starts_with("answer(") && completion.text.ends_with(", status=\"complete\")"),
        "{}",
        completion.text
    );
    let n_free = completion.forced.iter().filter(|forced| !**forced).count();
    assert!(n_free <= 2, "{n_free} of {} tokens were chosen", completion.tokens.len());
    for (forced, logprob) in completion.forced.iter().zip(&completion.logprobs) {
        assert!(*logprob <= 0.0 && (!forced || *logprob == 0.0));
    }
}

#[test]
fn full_recording_changes_no_token_and_knows_every_free_log_probability() {
    for name in BUNDLES {
        let model = model(name);
        let lark = r#"start: "x = " /[a-z]{3}/ " + forced text that is long enough" /[0-9]{2}/"#;
        let light = complete(&model, lark, &sampled(5));
        let full = complete(&model, lark, &GenerateOptions { logprobs: true, ..sampled(5) });
        assert_eq!((&full.tokens, &full.forced, &full.text), (&light.tokens, &light.forced, &light.text));
        assert_eq!(light.logprobs_free, None);
        let free = full.logprobs_free.unwrap();
        assert_eq!(free.len(), full.tokens.len());
        for (free, masked) in free.iter().zip(&full.logprobs) {
            assert!(*free <= masked + 1e-3 && free.is_finite(), "{free} {masked}");
        }
    }
}

#[test]
fn the_end_of_the_text_is_a_stop_token_or_the_grammar_s_end() {
    let model = model("tiny-llama");
    let closed = complete(&model, r#"start: "done""#, &GenerateOptions::default());
    assert_eq!((closed.stop, closed.text.as_str()), (Stop::GrammarEnd, "done"));
    let open = complete(&model, r#"start: /[a-c]+/"#, &GenerateOptions { max_tokens: 40, ..sampled(2) });
    assert!(matches!(open.stop, Stop::StopToken | Stop::MaxTokens));
    assert!(open.text.bytes().all(|b| (b'a'..=b'c').contains(&b)), "{}", open.text);
    let few = complete(
        &model,
        r#"start: "a text that is forced""#,
        &GenerateOptions { max_tokens: 2, ..GenerateOptions::default() },
    );
    assert_eq!((few.stop, few.tokens.len()), (Stop::MaxTokens, 2));
}

#[test]
fn a_grammar_that_does_not_compile_is_refused() {
    let model = model("tiny-llama");
    for lark in ["start: missing", "start: \"unclosed", "", "start: /(/"] {
        let error = Grammar::compile(model.tokenizer(), lark).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Grammar, "{lark}: {error}");
        assert!(error.message().starts_with("the grammar does not compile: "), "{error}");
    }
}

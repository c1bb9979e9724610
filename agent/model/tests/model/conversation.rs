//! A conversation is its tokens: how they came, in which batches and over which detours, makes no difference.

use std::ops::ControlFlow;

use crate::fixtures::{BUNDLES, argmax, fixture, model, prefill, prefilled};
use mote_model::{Completion, Conversation, ErrorKind, GenerateOptions, KvKind, LoadOptions, Model, Sampling, Stop};

fn some_ids(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| 5 + i * 37 % 450).collect()
}

fn greedy(max_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens, ..GenerateOptions::default() }
}

fn generate(conversation: &mut Conversation, options: &GenerateOptions) -> Completion {
    conversation.generate(options, None, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn logits_do_not_depend_on_batches() {
    for name in BUNDLES {
        for kv in [KvKind::F16, KvKind::Int8] {
            let options = LoadOptions { threads: 2, kv: Some(kv), ..LoadOptions::default() };
            let model = Model::open(&fixture(name), &options).unwrap();
            let ids = some_ids(400);
            let whole = prefilled(&model, &ids).logits().unwrap().to_vec();
            for n_tokens in [1, 2, 3, 7, 16, 47, 130] {
                let mut pieces = model.conversation().unwrap();
                ids.chunks(n_tokens).for_each(|piece| prefill(&mut pieces, piece).unwrap());
                assert_eq!(pieces.logits().unwrap(), whole, "{name} {kv} in pieces of {n_tokens}");
                assert_eq!(pieces.tokens(), ids);
            }
        }
    }
}

#[test]
fn a_truncated_conversation_goes_on_like_a_fresh_one() {
    for name in BUNDLES {
        let model = model(name);
        let (ids, other) = (some_ids(40), some_ids(90));
        let mut fresh = prefilled(&model, &ids);
        let expected = generate(&mut fresh, &greedy(24));

        let mut detour = prefilled(&model, &ids);
        prefill(&mut detour, &other[3..60]).unwrap();
        generate(&mut detour, &greedy(9));
        detour.truncate(ids.len());
        assert_eq!(detour.len(), ids.len());
        let logits = detour.logits().unwrap().to_vec();
        assert_eq!(logits, prefilled(&model, &ids).logits().unwrap());
        assert_eq!(argmax(&logits), expected.tokens[0]);

        detour.truncate(0);
        prefill(&mut detour, &ids).unwrap();
        assert_eq!(generate(&mut detour, &greedy(24)).tokens, expected.tokens);
        assert_eq!(detour.tokens(), fresh.tokens());
    }
}

#[test]
fn the_same_seed_gives_the_same_completion() {
    let model = model("tiny-llama");
    let complete = |seed| {
        let sampling = Sampling { temperature: 1.0, top_p: 0.9, min_p: 0.01, seed };
        generate(&mut prefilled(&model, &some_ids(20)), &GenerateOptions { max_tokens: 32, sampling, ..greedy(32) })
            .tokens
    };
    assert_eq!(complete(7), complete(7));
    assert_ne!(complete(7), complete(8));
}

#[test]
fn threads_do_not_change_the_tokens() {
    let complete = |threads| {
        let options = LoadOptions { threads, ..LoadOptions::default() };
        let model = Model::open(&fixture("tiny-qwen3"), &options).unwrap();
        let mut conversation = prefilled(&model, &some_ids(400));
        (generate(&mut conversation, &greedy(40)).tokens, conversation.logits().unwrap().to_vec())
    };
    assert_eq!(complete(1), complete(2));
    assert_eq!(complete(1), complete(3));
}

#[test]
fn the_window_is_full_at_its_last_token() {
    let bundle = mote_model::Bundle::open(&fixture("tiny-llama")).unwrap();
    let model = Model::load(bundle, &LoadOptions { threads: 1, context: 48, ..LoadOptions::default() }).unwrap();
    let mut conversation = prefilled(&model, &some_ids(40));
    let error = prefill(&mut conversation, &some_ids(9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextFull { limit: 48, used: 49 });
    assert_eq!(conversation.len(), 40);
    let completion = generate(&mut conversation, &greedy(100));
    assert_eq!((completion.stop, completion.tokens.len(), conversation.len()), (Stop::ContextFull, 8, 48));
    assert_eq!(generate(&mut conversation, &greedy(100)).tokens, Vec::<u32>::new());
}

#[test]
fn breaking_off_keeps_what_was_done() {
    let model = model("tiny-llama");
    let ids = some_ids(400);
    let mut conversation = model.conversation().unwrap();
    let mut heard = Vec::new();
    let error = conversation.prefill(&ids, &mut |done, total| {
        heard.push((done, total));
        if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(heard.first(), Some(&(0, 400)));
    let done = heard.last().unwrap().0;
    assert_eq!(conversation.tokens(), &ids[..done]);
    assert!((64..=256).contains(&done));

    let completion = conversation.generate(&greedy(20), None, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((completion.stop, completion.tokens.len()), (Stop::Cancelled, 1));
    assert_eq!(conversation.len(), done + 1);
}

#[test]
fn log_probabilities_without_a_mask_are_the_free_ones() {
    let model = model("tiny-qwen3");
    let sampling = Sampling { temperature: 0.8, seed: 3, ..Sampling::default() };
    let options = GenerateOptions { sampling, logprobs: true, ..greedy(20) };
    let completion = generate(&mut prefilled(&model, &some_ids(12)), &options);
    let free = completion.logprobs_free.unwrap();
    assert_eq!((free.len(), completion.logprobs.len()), (completion.tokens.len(), completion.tokens.len()));
    for (free, masked) in free.iter().zip(&completion.logprobs) {
        assert!((free - masked).abs() < 1e-4 && *free <= 0.0, "{free} {masked}");
    }
}

#[test]
fn a_stop_token_ends_it_and_a_stop_text_is_cut() {
    let model = model("tiny-llama");
    let free = generate(&mut prefilled(&model, &some_ids(30)), &greedy(30));
    let stop = free.tokens[10];
    let first = free.tokens.iter().position(|&token| token == stop).unwrap();
    let stopped = generate(&mut prefilled(&model, &some_ids(30)), &GenerateOptions { stop: vec![stop], ..greedy(30) });
    assert_eq!((stopped.stop, stopped.tokens.as_slice()), (Stop::StopToken, &free.tokens[..=first]));
    let text = model.tokenizer().decode(&free.tokens[..first]);
    assert_eq!(stopped.text, text);

    let ascii = free.text.as_bytes().windows(3).skip(6).find(|window| window.iter().all(u8::is_ascii_alphabetic));
    let pattern = String::from_utf8(ascii.unwrap().to_vec()).unwrap();
    let options = GenerateOptions { stop_texts: vec![pattern.clone()], ..greedy(30) };
    let mut told = String::new();
    let cut = prefilled(&model, &some_ids(30)).generate(&options, None, &mut |event| {
        told.push_str(event.text);
        ControlFlow::Continue(())
    });
    let cut = cut.unwrap();
    assert_eq!((cut.stop, Some(cut.text.as_str())), (Stop::StopText, free.text.split(&pattern).next()));
    assert!(told.starts_with(&cut.text));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let model = model("tiny-llama");
    let mut conversation = model.conversation().unwrap();
    let kind = |result: Result<Completion, mote_model::Error>| result.unwrap_err().kind();
    assert_eq!(kind(conversation.generate(&greedy(1), None, &mut |_| ControlFlow::Continue(()))), ErrorKind::Argument);
    assert_eq!(
        prefill(&mut conversation, &[500]).unwrap_err().to_string(),
        "token id outside the vocabulary of 500: 500"
    );
    prefill(&mut conversation, &[5]).unwrap();
    for (temperature, top_p, min_p) in [(-1.0, 1.0, 0.0), (f32::NAN, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.5)] {
        let sampling = Sampling { temperature, top_p, min_p, seed: 0 };
        let options = GenerateOptions { sampling, ..greedy(1) };
        assert_eq!(
            kind(conversation.generate(&options, None, &mut |_| ControlFlow::Continue(()))),
            ErrorKind::Argument
        );
    }
    let bundle = mote_model::Bundle::open(&fixture("tiny-llama")).unwrap();
    let error = Model::load(bundle, &LoadOptions { threads: 1, context: 513, ..LoadOptions::default() }).unwrap_err();
    assert_eq!(error.message(), "the context is longer than the model's 512 tokens: 513");
}

#[test]
fn a_budget_is_checked_before_loading_and_says_what_fits() {
    let open = |context, memory_budget| {
        Model::open(
            &fixture("tiny-llama"),
            &LoadOptions { threads: 1, context, memory_budget, ..LoadOptions::default() },
        )
    };
    let needed = open(512, None).unwrap().memory().total();
    assert_eq!(open(512, Some(needed)).unwrap().memory().kv_kind, KvKind::F16);
    let error = open(512, Some(needed - 1)).map(|model| model.memory().kv_kind);
    assert_eq!(error, Ok(KvKind::Int8));
    let error = open(512, Some(1 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MemoryBudget { limit: 1 << 20, used: needed });
    assert!(error.message().starts_with("the model does not fit the memory budget of 1 MiB: weights 1 MiB + f16 kv"));
    assert!(error.next_step().unwrap().starts_with("nothing of it fits: give at least "), "{error}");
    let mut manifest = mote_model::Manifest::read(&fixture("tiny-llama")).unwrap();
    manifest.context_length = 8192;
    let budget = manifest.memory_need(4000, KvKind::F16).total();
    let options = LoadOptions { kv: Some(KvKind::F16), memory_budget: Some(budget), ..LoadOptions::default() };
    let error = options.memory_need(&manifest).unwrap_err();
    let hint = error.next_step().unwrap();
    assert!(hint.starts_with("this fits: --context 3840 --kv f16, or --context "), "{hint}");
}
